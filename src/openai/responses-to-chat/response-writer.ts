import type { CallPart, ChatPart, ChatUsage } from './chat-part.ts'
import { type ItemStatus, itemText, literalOf, partText, type ResponseItem, textForms } from './response-item.ts'

type TextKind = keyof typeof textForms
const textKinds = ['reasoning', 'text', 'refusal'] as const satisfies readonly TextKind[]

/** What a response begins with. */
export interface ResponseStart {
  /** A new id without its prefix, of characters that JSON does not escape. */
  readonly key: string
  /** Seconds since 1970, where the engine does not say. */
  readonly createdAt: number
  /** Of `ChatRequest`. */
  readonly echo: string
}

/** Makes a response of what a chat answer adds: the events of a stream, and the response itself. */
export class ResponseWriter {
  readonly #start: ResponseStart
  readonly #items: ResponseItem[] = []
  readonly #done: string[] = []
  readonly #calls = new Map<number, ResponseItem>()
  #openText: ResponseItem | undefined
  #head: string | undefined
  #sequence = 0
  #finish: string | undefined
  #usage: ChatUsage | undefined
  /** Of what was added, in UTF-16 units. */
  heldLength = 0
  /** Memory that it takes. */
  heldBytes = 0

  constructor(start: ResponseStart) {
    this.#start = start
  }

  /** The events of what is added. */
  add(part: ChatPart): string {
    const events = [this.#begin(part)]
    this.#usage = part.usage ?? this.#usage
    this.#finish = part.finish ?? this.#finish
    for (const kind of textKinds) if (part[kind] !== '') events.push(this.#addText(kind, part[kind]))
    for (const call of part.calls) events.push(this.#addCall(call))
    return events.join('')
  }

  /** The last events, and the whole response. */
  end(): { readonly events: string; readonly response: string } {
    const reason = incompleteReasons.get(this.#finish ?? '')
    if (failures.has(this.#finish ?? '')) return this.fail('The engine could not finish the answer.')
    const status = reason === undefined ? 'completed' : 'incomplete'
    const events = [this.#begin(undefined), this.#closeText(this.#statusOf(this.#openText, status))]
    for (const call of this.#calls.values()) events.push(this.#closeCall(call, this.#statusOf(call, status)))
    const response = this.#response(status, { reason })
    return { events: events.join('') + this.#event(`response.${status}`, `"response":${response}`), response }
  }

  /** The last event of an answer that cannot be finished, and the response. */
  fail(message: string): { readonly events: string; readonly response: string } {
    const begin = this.#begin(undefined)
    const response = this.#response('failed', { message })
    return { events: begin + this.#event('response.failed', `"response":${response}`), response }
  }

  /** Of an answer that was cut only the last item is. */
  #statusOf(item: ResponseItem | undefined, status: ItemStatus): ItemStatus {
    return item?.place === this.#items.length - 1 ? status : 'completed'
  }

  #begin(part: ChatPart | undefined): string {
    if (this.#head !== undefined) return ''
    const { key, createdAt, echo } = this.#start
    const model = JSON.stringify(part?.model ?? '')
    this.#head = `{"id":"resp_${key}","object":"response","created_at":${part?.created ?? createdAt},"model":${model},${echo}`
    const response = `"response":${this.#response('in_progress', {})}`
    return this.#event('response.created', response) + this.#event('response.in_progress', response)
  }

  #newItem(kind: ResponseItem['kind'], prefix: string, call?: ResponseItem['call']): ResponseItem {
    const place = this.#items.length
    const id = `${prefix}_${this.#start.key}_${place}`
    const item = { kind, id, place, literals: [], ...(call === undefined ? {} : { call }) }
    this.#items.push(item)
    return item
  }

  #addText(kind: TextKind, text: string): string {
    const { event, prefix } = textForms[kind]
    const before = this.#openText?.kind === kind ? '' : this.#closeText('completed')
    const isNew = this.#openText === undefined
    this.#openText ??= this.#newItem(kind, prefix)
    const item = this.#openText
    const literal = this.#hold(item, text)
    const logprobs = kind === 'text' ? ',"logprobs":[]' : ''
    return [
      before,
      isNew ? this.#added(item) : '',
      isNew ? this.#event('response.content_part.added', `${partAt(item)},"part":${partText(kind, '""')}`) : '',
      this.#event(`${event}.delta`, `${partAt(item)},"delta":${literal}${logprobs}`),
    ].join('')
  }

  #closeText(status: ItemStatus): string {
    const item = this.#openText
    if (item === undefined || item.kind === 'call') return ''
    this.#openText = undefined
    const { event, member } = textForms[item.kind]
    const literal = literalOf(item)
    const logprobs = item.kind === 'text' ? ',"logprobs":[]' : ''
    return [
      this.#event(`${event}.done`, `${partAt(item)},"${member}":${literal}${logprobs}`),
      this.#event('response.content_part.done', `${partAt(item)},"part":${partText(item.kind, literal)}`),
      this.#itemDone(item, status),
    ].join('')
  }

  #addCall({ index, id, name = '', arguments: input }: CallPart): string {
    const known = this.#calls.get(index)
    // Some engines count all calls 0: another id with a name begins another call.
    const isNew = known === undefined || (name !== '' && id !== undefined && id !== known.call?.id)
    const before = isNew ? this.#closeText('completed') + (known ? this.#closeCall(known, 'completed') : '') : ''
    const callId = id ?? `call_${this.#start.key}_${index}`
    const item = isNew ? this.#newItem('call', 'fc', { id: callId, name }) : known
    this.#calls.set(index, item)
    const added = isNew ? this.#added(item) : ''
    if (input === '') return before + added
    const delta = `${itemAt(item)},"delta":${this.#hold(item, input)}`
    return before + added + this.#event('response.function_call_arguments.delta', delta)
  }

  #closeCall(item: ResponseItem, status: ItemStatus): string {
    const name = JSON.stringify(item.call?.name)
    const done = `${itemAt(item)},"name":${name},"arguments":${literalOf(item)}`
    return this.#event('response.function_call_arguments.done', done) + this.#itemDone(item, status)
  }

  /** Returns the text as JSON. */
  #hold(item: ResponseItem, text: string): string {
    const literal = JSON.stringify(text)
    item.literals.push(literal.slice(1, -1))
    this.heldLength += literal.length
    this.heldBytes += 2 * literal.length + pieceOverheadBytes
    return literal
  }

  #added(item: ResponseItem): string {
    return this.#event(
      'response.output_item.added',
      `"output_index":${item.place},"item":${itemText(item, 'in_progress')}`,
    )
  }

  #itemDone(item: ResponseItem, status: ItemStatus): string {
    const text = itemText(item, status)
    this.#done[item.place] = text
    return this.#event('response.output_item.done', `"output_index":${item.place},"item":${text}`)
  }

  #response(
    status: ItemStatus | 'failed',
    { reason, message }: { readonly reason?: string | undefined; readonly message?: string },
  ): string {
    const error = message === undefined ? 'null' : JSON.stringify({ code: 'server_error', message })
    const details = reason === undefined ? 'null' : JSON.stringify({ reason })
    const output = this.#done.filter((item) => item !== undefined).join(',')
    const usage = this.#usage === undefined ? 'null' : usageText(this.#usage)
    return `${this.#head ?? '{'},"status":"${status}","error":${error},"incomplete_details":${details},"output":[${output}],"usage":${usage}}`
  }

  #event(type: string, members: string): string {
    const data = `{"type":"${type}","sequence_number":${this.#sequence},${members}}`
    this.#sequence += 1
    return `event: ${type}\ndata: ${data}\n\n`
  }
}

/** Memory of a string beside its text. */
const pieceOverheadBytes = 64

const itemAt = ({ id, place }: ResponseItem): string => `"item_id":"${id}","output_index":${place}`
const partAt = (item: ResponseItem): string => `${itemAt(item)},"content_index":0`

/** Reasons by which an answer ended early, in both APIs. */
const incompleteReasons: ReadonlyMap<string, string> = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
])
const failures: ReadonlySet<string> = new Set(['abort', 'error'])

const usageText = ({ promptTokens, outputTokens, cachedTokens = 0, reasoningTokens }: ChatUsage): string =>
  JSON.stringify({
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + outputTokens,
  })
