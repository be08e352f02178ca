import type { SlicedWork } from '../../async/slices.ts'
import { objectMembers } from '../../json/object-members.ts'
import { GatewayError } from '../gateway-error.ts'
import { isGiven, nameIn, unsupported } from './body-values.ts'
import { chatContent } from './chat-content.ts'
import { type JsonText, jsonList, jsonText } from './json-text.ts'

/** Of items that are read at once, some 1 ms; each counts as so many bytes more. */
const bytesAtOnce = 65_536
const bytesPerItem = 1024

/** Many templates know no other role for what a developer says. */
const roles: ReadonlyMap<string | undefined, string> = new Map([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['system', 'system'],
  ['developer', 'system'],
])
const nothing = Buffer.from('null')

/**
 * Items as messages, each by itself, so that equal histories make equal prompts: no id but those of calls is in them. A
 * message of the assistant and the calls behind it are one, as the model wrote them. Reasoning is left out, as templates
 * do with that of earlier turns. In slices. @throws GatewayError `unsupported_parameter`, `invalid_value`
 */
export function* chatMessages(items: readonly Buffer[]): SlicedWork<readonly JsonText[]> {
  const messages: JsonText[] = []
  let assistant: { content: Buffer | JsonText; calls: JsonText[] } | undefined
  const endAssistant = (): void => {
    if (assistant === undefined) return
    const { content, calls } = assistant
    const called = calls.length === 0 ? [] : jsonText`,"tool_calls":${jsonList(calls)}`
    messages.push(jsonText`{"role":"assistant","content":${content}${called}}`)
    assistant = undefined
  }
  let since = 0
  for (const item of items) {
    since += item.length + bytesPerItem
    if (since > bytesAtOnce) {
      since = 0
      yield
    }
    const members = yield* objectMembers(item)
    const memberOr = (name: string, other: Buffer): Buffer => members.get(name) ?? other
    const type = nameIn(members.get('type')) ?? (members.has('role') ? 'message' : '')
    switch (type) {
      case 'message': {
        endAssistant()
        const content = yield* chatContent(members.get('content'))
        const role = roles.get(nameIn(members.get('role')))
        if (role === undefined)
          throw new GatewayError('invalid_value', {
            param: 'input',
            message: 'The role of a message is user, assistant, system or developer.',
          })
        if (role === 'assistant') assistant = { content, calls: [] }
        else messages.push(jsonText`{"role":${Buffer.from(`"${role}"`)},"content":${content}}`)
        break
      }
      case 'function_call': {
        assistant ??= { content: nothing, calls: [] }
        const [id, name, input] = [
          memberOr('call_id', nothing),
          memberOr('name', nothing),
          memberOr('arguments', noInput),
        ]
        assistant.calls.push(
          jsonText`{"id":${id},"type":"function","function":{"name":${name},"arguments":${isGiven(input) ? input : noInput}}}`,
        )
        break
      }
      case 'function_call_output': {
        endAssistant()
        const content = yield* chatContent(members.get('output'))
        messages.push(jsonText`{"role":"tool","tool_call_id":${memberOr('call_id', nothing)},"content":${content}}`)
        break
      }
      case 'reasoning':
        break
      default:
        throw unsupported('input', `Items of the type ${JSON.stringify(type.slice(0, 100))} are not supported.`)
    }
  }
  endAssistant()
  return messages
}

const noInput = Buffer.from('"{}"')
