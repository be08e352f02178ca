import { type Members, membersOf } from '../json/members-of.ts'

interface Event extends Members {
  readonly type: string
}

const listOf = (value: unknown): readonly Members[] => (Array.isArray(value) ? value.map(membersOf) : [])

/**
 * A finished response as the stream of OpenAI's events that makes it: each text in one delta. Those with a number up to
 * `startingAfter` are left out; the numbers are those of this stream, not of the one that the engine sent once.
 */
export const replayEvents = (response: Members, startingAfter = -1): string => {
  const output = listOf(response['output'])
  const begun = { ...response, status: 'in_progress', output: [], usage: null }
  const { status } = response
  const end = status === 'incomplete' || status === 'failed' ? status : 'completed'
  const events: readonly Event[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, index) => eventsOf(item, index)),
    { type: `response.${end}`, response },
  ]
  return events
    .map((event, number) => ({ ...event, sequence_number: number }))
    .slice(startingAfter + 1)
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('')
}

const eventsOf = (item: Members, index: number): readonly Event[] => {
  const place = { output_index: index, item_id: item['id'] }
  const { begun, events } = growthOf(item, place)
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...item, ...begun, status: 'in_progress' } },
    ...events,
    { type: 'response.output_item.done', output_index: index, item },
  ]
}

/** What an item lacks when it begins, and the events that add it. */
const growthOf = (item: Members, place: Members): { readonly begun: Members; readonly events: readonly Event[] } => {
  switch (item['type']) {
    case 'message':
      return { begun: { content: [] }, events: partEvents(listOf(item['content']), place) }
    case 'reasoning':
      return {
        begun: { summary: [], ...('content' in item && { content: [] }) },
        events: [...summaryEvents(listOf(item['summary']), place), ...partEvents(listOf(item['content']), place)],
      }
    case 'function_call':
      return growthBy('arguments', 'function_call_arguments', item, place)
    case 'custom_tool_call':
      return growthBy('input', 'custom_tool_call_input', item, place)
    default:
      return { begun: {}, events: [] }
  }
}

const growthBy = (member: string, name: string, item: Members, place: Members) => ({
  begun: { [member]: '' },
  events: textEvents(name, place, { delta: item[member], done: { [member]: item[member] } }),
})

const textEvents = (name: string, place: Members, text: { readonly delta: unknown; readonly done: Members }) => [
  { type: `response.${name}.delta`, ...place, delta: text.delta },
  { type: `response.${name}.done`, ...place, ...text.done },
]

/** Kinds of parts whose text grows: the member that has it, and the name of the events. */
const growing: ReadonlyMap<unknown, { readonly member: string; readonly name: string }> = new Map([
  ['output_text', { member: 'text', name: 'output_text' }],
  ['refusal', { member: 'refusal', name: 'refusal' }],
  ['reasoning_text', { member: 'text', name: 'reasoning_text' }],
])

const partEvents = (parts: readonly Members[], item: Members): readonly Event[] =>
  parts.flatMap((part, index) => {
    const place = { ...item, content_index: index }
    const growth = growing.get(part['type'])
    const text = growth && part[growth.member]
    const logprobs = part['type'] === 'output_text' ? { logprobs: part['logprobs'] ?? [] } : {}
    return [
      { type: 'response.content_part.added', ...place, part: growth ? { ...part, [growth.member]: '' } : part },
      ...(growth
        ? textEvents(growth.name, { ...place, ...logprobs }, { delta: text, done: { [growth.member]: text } })
        : []),
      { type: 'response.content_part.done', ...place, part },
    ]
  })

const summaryEvents = (parts: readonly Members[], item: Members): readonly Event[] =>
  parts.flatMap((part, index) => {
    const place = { ...item, summary_index: index }
    const { text } = part
    return [
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      ...textEvents('reasoning_summary_text', place, { delta: text, done: { text } }),
      { type: 'response.reasoning_summary_part.done', ...place, part },
    ]
  })
