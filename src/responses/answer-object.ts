import type { SlicedWork } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import { type JsonLimits, type JsonMember, scanJsonObject } from '../json/scan-json-object.ts'
import { setMembers } from '../json/set-members.ts'

/** What the client of a turn asked for, which its answer repeats. */
export interface AskedFor {
  readonly previousResponseId: string | undefined
  readonly conversationId: string | undefined
  /** The answer is kept when it is complete. */
  readonly store: boolean
  /** How many of the oldest items of the history were left out. Default: none. */
  readonly leftOut?: number
}

/** Member of a response that says how many of the oldest items of its history were left out. */
export const leftOutMember = 'truncated_items'

/** A response object of an engine, whole or in an event of its stream. */
export interface AnswerObject {
  /** Undefined: it has none. */
  readonly id: string | undefined
  /** It is all of a successful answer: OpenAI keeps those that ended early, too. */
  readonly isFinal: boolean
  /** With what the client asked for; one that failed says that it is not kept. */
  readonly text: Buffer
}

const names = ['id', 'object', 'status', 'error', 'previous_response_id', 'store', 'conversation', leftOutMember]
const finalStates: ReadonlySet<unknown> = new Set(['completed', 'incomplete'])
const earlyStates: ReadonlySet<unknown> = new Set(['queued', 'in_progress'])
const maxIdLength = 512

/** Undefined: it is no response object, as the body of an error is none. In slices. */
export function* rewriteAnswer(
  text: Buffer,
  asked: AskedFor,
  limits: JsonLimits,
): SlicedWork<AnswerObject | undefined> {
  const scan = yield* scanJsonObject(text, limits, names)
  if (scan.kind !== 'object') return undefined
  const read = (name: string) => valueIn(text, scan.members.get(name))
  if (read('object') !== 'response') return undefined
  const [id, status] = [read('id'), read('status')]
  const isFinal = finalStates.has(status) && isNull(text, scan.members.get('error'))
  const store = asked.store && (isFinal || earlyStates.has(status))
  return {
    id: typeof id === 'string' ? id : undefined,
    isFinal,
    text: setMembers(text, scan, valuesOf({ ...asked, store })),
  }
}

const valuesOf = ({ previousResponseId, conversationId, store, leftOut = 0 }: AskedFor) =>
  new Map([
    ['previous_response_id', json(previousResponseId ?? null)],
    ['store', json(store)],
    // Engines know nothing of conversations.
    ...(conversationId === undefined ? [] : [['conversation', json({ id: conversationId })] as const]),
    ...(leftOut === 0 ? [] : [[leftOutMember, json(leftOut)] as const]),
  ])

const json = (value: unknown): readonly Buffer[] => [Buffer.from(JSON.stringify(value))]

const valueIn = (text: Buffer, member: JsonMember | undefined): unknown =>
  member === undefined ? undefined : readJson(text.toString('utf8', member.start, member.end), maxIdLength)

const isNull = (text: Buffer, member: JsonMember | undefined): boolean =>
  member === undefined || text.toString('latin1', member.start, member.end).trim() === 'null'
