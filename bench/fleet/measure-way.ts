import { setTimeout as delay } from 'node:timers/promises'
import { say } from '../bench-process.ts'
import type { SentTurn } from './send-turn.ts'
import { halfTimeMs, type PlannedConversation, planConversations, type Workload } from './workload.ts'

/** One turn of a run. */
export interface TurnRow extends Omit<SentTurn, 'sessionId'> {
  readonly conversation: string
  /** From 1; 0: sent beside the first turn. */
  readonly turn: number
  /** When it was sent, since the start of the run. */
  readonly startMs: number
  /** Prompt tokens that no turn before had. */
  readonly newTokens: number
}

/** A run of the workload, by one way. */
export interface WayRun {
  /** In the order in which they were sent. */
  readonly turns: readonly TurnRow[]
  readonly durationMs: number
  /** When the storm came; it comes to all ways at the same time. */
  readonly stormMs: number
  readonly stormFailure: string | undefined
}

/** Sends a turn of a conversation, and what goes with it. */
export type SendTurn = (conversation: string, turn: number) => Promise<readonly Omit<TurnRow, 'startMs'>[]>

interface MeasureWay {
  readonly name: string
  readonly workload: Workload
  readonly send: SendTurn
  readonly storm: () => Promise<void>
}

const progressMs = 10_000

/** Runs all conversations to their ends. A turn that fails is not tried again: the next one follows after its pause. */
export const measureWay = async (options: MeasureWay): Promise<WayRun> => {
  const { name, workload } = options
  const plan = planConversations(workload)
  const stormMs = halfTimeMs(plan)
  const turns: TurnRow[] = []
  const startedMs = performance.now()
  const elapsedMs = (): number => performance.now() - startedMs
  const progress = setInterval(() => {
    const failed = turns.filter(({ failure }) => failure !== undefined).length
    const all = workload.conversations * workload.turns
    say(`${name}: ${turns.length} of ${all} turns, ${failed} failed, ${(elapsedMs() / 1000).toFixed(0)} s`)
  }, progressMs)
  const storm = delay(stormMs)
    .then(options.storm)
    .then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
  try {
    await Promise.all(plan.map((conversation) => runConversation(conversation, options, { elapsedMs, turns })))
    const durationMs = elapsedMs()
    const stormFailure = await storm
    return { turns: turns.toSorted((a, b) => a.startMs - b.startMs), durationMs, stormMs, stormFailure }
  } finally {
    clearInterval(progress)
  }
}

const runConversation = async (
  { name: conversation, startMs, pausesMs }: PlannedConversation,
  { send }: MeasureWay,
  run: { readonly elapsedMs: () => number; readonly turns: TurnRow[] },
): Promise<void> => {
  for (const [index, pauseMs] of [startMs, ...pausesMs].entries()) {
    await delay(pauseMs)
    const startMs = run.elapsedMs()
    const sent = await send(conversation, index + 1)
    run.turns.push(...sent.map((row) => ({ ...row, startMs })))
  }
}
