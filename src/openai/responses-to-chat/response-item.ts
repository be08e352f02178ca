/** An item of a response: a text of one of three kinds, or a call of a function. */
export type ItemKind = keyof typeof textForms | 'call'

/** How each kind of text stands in a response and in the events that make it. */
export const textForms = {
  reasoning: { prefix: 'rs', part: 'reasoning_text', member: 'text', event: 'response.reasoning_text', more: '' },
  text: {
    prefix: 'msg',
    part: 'output_text',
    member: 'text',
    event: 'response.output_text',
    more: ',"annotations":[],"logprobs":[]',
  },
  refusal: { prefix: 'msg', part: 'refusal', member: 'refusal', event: 'response.refusal', more: '' },
} as const

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** An item as far as it is known. */
export interface ResponseItem {
  readonly kind: ItemKind
  readonly id: string
  /** Of a call. */
  readonly call?: { readonly id: string; readonly name: string }
  /** Its place in the response. */
  readonly place: number
  /** The text, or the arguments: the inside of a JSON string in pieces. */
  readonly literals: string[]
}

/** The text so far, as JSON. */
export const literalOf = ({ literals }: ResponseItem): string => `"${literals.join('')}"`

/** The part of a text item that has its text, as JSON. `literal`: the text as JSON. */
export const partText = (kind: keyof typeof textForms, literal: string): string => {
  const { part, member, more } = textForms[kind]
  return `{"type":"${part}","${member}":${literal}${more}}`
}

/** The item as JSON; in progress it has no text yet. */
export const itemText = (item: ResponseItem, status: ItemStatus): string => {
  const { kind, id, call } = item
  const literal = status === 'in_progress' ? undefined : literalOf(item)
  const head = `{"id":"${id}","status":"${status}",`
  if (kind === 'call')
    return `${head}"type":"function_call","call_id":${JSON.stringify(call?.id)},"name":${JSON.stringify(call?.name)},"arguments":${literal ?? '""'}}`
  const content = literal === undefined ? '[]' : `[${partText(kind, literal)}]`
  return kind === 'reasoning'
    ? `${head}"type":"reasoning","summary":[],"content":${content}}`
    : `${head}"type":"message","role":"assistant","content":${content}}`
}
