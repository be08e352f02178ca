import type { SlicedWork } from '../../async/slices.ts'
import { arrayItems } from '../../json/array-items.ts'
import { objectMembers } from '../../json/object-members.ts'
import { GatewayError } from '../gateway-error.ts'
import { isGiven, isList, isObject, isText, nameIn, unsupported } from './body-values.ts'
import { type JsonText, jsonObject, jsonText } from './json-text.ts'

/** Members of a chat body. */
export type ChatMembers = readonly (readonly [string, Buffer | JsonText])[]

const only = (members: ReadonlyMap<string, Buffer>, names: readonly string[]): JsonText =>
  jsonObject(
    names.map((name) => {
      const value = members.get(name)
      return [name, isGiven(value) ? value : undefined] as const
    }),
  )

const shown = (type: string | undefined): string => JSON.stringify((type ?? '').slice(0, 100))

/** Tools that the client itself runs. @throws GatewayError `unsupported_parameter` for tools that OpenAI runs */
export function* chatTools(tools: Buffer): SlicedWork<readonly JsonText[]> {
  if (!isList(tools)) throw new GatewayError('invalid_type', { param: 'tools', message: 'tools is a list.' })
  const translated: JsonText[] = []
  for (const [index, tool] of (yield* arrayItems(tools)).entries()) {
    const members = yield* objectMembers(tool)
    const type = nameIn(members.get('type'))
    if (type !== 'function')
      throw unsupported(
        `tools[${index}].type`,
        `Tools of the type ${shown(type)} are not supported: only functions are.`,
      )
    const called = only(members, ['name', 'description', 'parameters', 'strict'])
    translated.push(jsonText`{"type":"function","function":${called}}`)
  }
  return translated
}

/** @throws GatewayError `unsupported_parameter` */
export function* chatToolChoice(choice: Buffer): SlicedWork<Buffer | JsonText> {
  if (isText(choice)) return choice
  const members = yield* objectMembers(choice)
  const type = nameIn(members.get('type'))
  if (type !== 'function') throw unsupported('tool_choice', `A choice of the type ${shown(type)} is not supported.`)
  return jsonText`{"type":"function","function":${only(members, ['name'])}}`
}

/** `text`: the form of the answer. @throws GatewayError `unsupported_parameter` */
export function* chatText(text: Buffer): SlicedWork<ChatMembers> {
  const members = yield* objectMembers(text)
  const [format, verbosity] = [members.get('format'), members.get('verbosity')]
  const spoken: ChatMembers = isGiven(verbosity) ? [['verbosity', verbosity]] : []
  if (!isObject(format)) return spoken
  const form = yield* objectMembers(format)
  const type = nameIn(form.get('type'))
  switch (type) {
    case 'text':
      return spoken
    case 'json_object':
      return [...spoken, ['response_format', jsonText`{"type":"json_object"}`]]
    case 'json_schema': {
      const schema = only(form, ['name', 'description', 'schema', 'strict'])
      return [...spoken, ['response_format', jsonText`{"type":"json_schema","json_schema":${schema}}`]]
    }
    default:
      throw unsupported('text.format.type', `An answer of the type ${shown(type)} is not supported.`)
  }
}

/** `reasoning`: `summary` `auto` asks for one only where there is one. @throws GatewayError `unsupported_parameter` */
export function* chatReasoning(reasoning: Buffer): SlicedWork<ChatMembers> {
  const members = yield* objectMembers(reasoning)
  for (const name of ['summary', 'generate_summary']) {
    const value = members.get(name)
    if (isGiven(value) && nameIn(value) !== 'auto')
      throw unsupported(`reasoning.${name}`, 'Engines do not summarise their reasoning.')
  }
  const effort = members.get('effort')
  return isGiven(effort) ? [['reasoning_effort', effort]] : []
}
