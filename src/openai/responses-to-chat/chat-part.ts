import { membersOf } from '../../json/members-of.ts'
import { readTimings, readUsage, type TokenUsage } from '../usage.ts'

/** What a chunk of a chat stream adds to the answer; a whole chat answer is one that adds everything. */
export interface ChatPart {
  readonly model: string
  /** Seconds since 1970; undefined: it does not say. */
  readonly created: number | undefined
  /** Texts that are added; empty: none. */
  readonly reasoning: string
  readonly text: string
  readonly refusal: string
  readonly calls: readonly CallPart[]
  /** Why the answer ended; undefined: it has not. */
  readonly finish: string | undefined
  readonly usage: ChatUsage | undefined
  /** The engine's words on why it cannot go on. Undefined: it can. */
  readonly error: string | undefined
}

/** A call of a function, or what is added to one. */
export interface CallPart {
  readonly index: number
  readonly id: string | undefined
  readonly name: string | undefined
  readonly arguments: string
}

export interface ChatUsage extends TokenUsage {
  readonly reasoningTokens: number
}

/** Undefined: it is nothing of a chat. */
export const readChatPart = (value: unknown): ChatPart | undefined => {
  const { model, created, choices, usage, timings, error } = membersOf(value)
  if (error === undefined && !Array.isArray(choices)) return undefined
  const choice = membersOf(listOf(choices)[0])
  const added = membersOf(choice['delta'] ?? choice['message'])
  const finish = choice['finish_reason']
  return {
    model: textOf(model),
    created: typeof created === 'number' ? Math.floor(created) : undefined,
    reasoning: textOf(added['reasoning_content'] ?? added['reasoning']),
    text: textOf(added['content']),
    refusal: textOf(added['refusal']),
    calls: listOf(added['tool_calls']).map(callOf),
    finish: typeof finish === 'string' ? finish : undefined,
    usage: usageOf(usage, timings),
    error: error === undefined || error === null ? undefined : errorOf(error),
  }
}

const callOf = (value: unknown, position: number): CallPart => {
  const { index, id, function: called } = membersOf(value)
  const { name, arguments: input } = membersOf(called)
  return {
    index: typeof index === 'number' ? index : position,
    // Some engines count them.
    id: typeof id === 'number' ? String(id) : textOf(id) || undefined,
    name: textOf(name) || undefined,
    arguments: typeof input === 'object' && input !== null ? JSON.stringify(input) : textOf(input),
  }
}

/** llama-server tells only in its timings what was cached. */
const usageOf = (value: unknown, timings: unknown): ChatUsage | undefined => {
  const usage = readUsage(value)
  const timed = readTimings(timings)
  const counts = usage ?? timed
  if (counts === undefined) return undefined
  const cachedTokens = counts.cachedTokens ?? timed?.cachedTokens
  const reasoning = membersOf(membersOf(value)['completion_tokens_details'])['reasoning_tokens']
  return {
    ...counts,
    ...(cachedTokens === undefined ? {} : { cachedTokens }),
    reasoningTokens: typeof reasoning === 'number' ? reasoning : 0,
  }
}

const errorOf = (error: unknown): string =>
  textOf(error) || textOf(membersOf(error)['message']) || 'The engine could not finish the answer.'

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
