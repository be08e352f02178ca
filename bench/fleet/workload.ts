import { createHash } from 'node:crypto'

/** What a fleet is loaded with. */
export interface Workload {
  readonly conversations: number
  readonly turns: number
  /** Of a conversation's first prompt. */
  readonly firstTokens: number
  /** That a client adds with each turn, beside the answer before. */
  readonly moreTokens: number
  readonly outputTokens: number
  /** Mean of the pauses between an answer and the next turn. */
  readonly pauseMs: number
  readonly seed: string
}

/** When a conversation's turns are sent: equal for equal workloads, whichever way the turns go. */
export interface PlannedConversation {
  readonly name: string
  readonly startMs: number
  /** Between an answer and the turn after it; the first one stands before turn 2. */
  readonly pausesMs: readonly number[]
}

const [shortestPause, longestPause] = [0.2, 3]

/** Conversations that start one after the other during one mean pause, with pauses of an exponential distribution. */
export const planConversations = (workload: Workload): readonly PlannedConversation[] =>
  Array.from({ length: workload.conversations }, (_, index) => {
    const name = `conversation-${index}`
    return {
      name,
      startMs: (index * workload.pauseMs) / workload.conversations,
      pausesMs: Array.from({ length: workload.turns - 1 }, (_pause, turn) => {
        const drawn = -Math.log(1 - uniform(`${workload.seed} ${name} ${turn}`))
        return workload.pauseMs * Math.min(longestPause, Math.max(shortestPause, drawn))
      }),
    }
  })

/** Half of the time until the last turn, were all answers immediate. */
export const halfTimeMs = (plan: readonly PlannedConversation[]): number =>
  Math.max(...plan.map(({ startMs, pausesMs }) => pausesMs.reduce((sum, pauseMs) => sum + pauseMs, startMs))) / 2

/** Tokens of a turn that no turn of the conversation before had: all of the first one. */
export const newTokensOf = (workload: Workload, turn: number): number =>
  turn === 1 ? workload.firstTokens : workload.moreTokens + workload.outputTokens

/** Tokens of a turn's prompt, which is the whole conversation so far. */
export const promptTokensOf = ({ firstTokens, moreTokens, outputTokens }: Workload, turn: number): number =>
  firstTokens + (turn - 1) * (moreTokens + outputTokens)

/** A number from 0 to below 1: the same for the same text. */
const uniform = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32
