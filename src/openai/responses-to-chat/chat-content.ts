import type { SlicedWork } from '../../async/slices.ts'
import { arrayItems } from '../../json/array-items.ts'
import { objectMembers } from '../../json/object-members.ts'
import { isGiven, isList, isText, nameIn, unsupported } from './body-values.ts'
import { type JsonText, jsonList, jsonObject, jsonText } from './json-text.ts'

const noText = Buffer.from('""')

/**
 * The content of a message, or the output of a call, as chat has it. One text is a text, not a list: templates of many
 * models take no other. @throws GatewayError `unsupported_parameter`
 */
export function* chatContent(value: Buffer | undefined): SlicedWork<Buffer | JsonText> {
  if (!isGiven(value)) return noText
  if (!isList(value)) return value
  const parts: JsonText[] = []
  let only: Buffer | undefined
  for (const part of yield* arrayItems(value)) {
    const { text, chat } = yield* chatPart(part)
    only = parts.length === 0 ? text : undefined
    parts.push(chat)
  }
  if (parts.length === 0) return noText
  return only ?? jsonList(parts)
}

interface ChatPart {
  readonly chat: JsonText
  /** Of a part that is nothing but a text. */
  readonly text?: Buffer
}

const textPart = (text: Buffer | undefined): ChatPart =>
  isText(text)
    ? { chat: jsonText`{"type":"text","text":${text}}`, text }
    : { chat: jsonText`{"type":"text","text":""}` }

function* chatPart(part: Buffer): SlicedWork<ChatPart> {
  const members = yield* objectMembers(part)
  const type = nameIn(members.get('type')) ?? ''
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return textPart(members.get('text'))
    case 'refusal':
      return textPart(members.get('refusal'))
    case 'input_image': {
      const url = members.get('image_url')
      if (!isText(url)) throw unsupported('input', 'An input_image is sent by its image_url here, not by a file_id.')
      const detail = members.get('detail')
      const image = jsonObject([
        ['url', url],
        ['detail', isGiven(detail) ? detail : undefined],
      ])
      return { chat: jsonText`{"type":"image_url","image_url":${image}}` }
    }
    case 'input_audio': {
      const audio = members.get('input_audio')
      if (audio !== undefined) return { chat: jsonText`{"type":"input_audio","input_audio":${audio}}` }
    }
  }
  throw unsupported('input', `Content of the type ${JSON.stringify(type.slice(0, 100))} is not supported.`)
}
