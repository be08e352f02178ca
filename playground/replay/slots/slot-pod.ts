import type { ReportedSlot } from '../../../src/kvcache/slots/slot-ledger.ts'
import { createSlotScheduler } from '../../engine/slot-scheduler.ts'
import type { EngineReading } from '../gateway-parts.ts'
import { createStepEngine } from './step-engine.ts'

/** A request for a pod. */
export interface SlotJob {
  /** Undefined: any that is idle. */
  readonly slot: number | undefined
  /** Called once it has its slot, with the mark that this has until then. */
  readonly tokensToCompute: (mark: string) => number
  readonly outputTokens: number
  onFirstToken(): void
}

export type SlotPod = ReturnType<typeof createSlotPod>

/** Nothing that a simulated pod runs is broken off. */
const unlimited = (): AbortSignal => new AbortController().signal

/** One engine with slots: a slot runs one request at a time, and is loaded and saved while it runs none. */
export const createSlotPod = ({
  slots: count,
  ...options
}: Parameters<typeof createStepEngine>[0] & { readonly slots: number }) => {
  const engine = createStepEngine(options)
  const scheduler = createSlotScheduler(count)
  /** The last request that ran in each slot. */
  const tasks: number[] = Array.from({ length: count }, () => -1)
  let started = 0

  const unusedForLongest = (idle: readonly number[]): number =>
    idle.toSorted((a, b) => (tasks[a] ?? -1) - (tasks[b] ?? -1))[0] ?? 0

  const mark = (slot: number): string => String(tasks[slot] ?? -1)

  const action = (slot: number, durationMs: number): Promise<void> =>
    scheduler.run({ slotId: slot, choose: () => slot, signal: unlimited() }, () => engine.exclusive(durationMs))

  return {
    /** Resolves when the answer is complete, to the slot where it ran. */
    run: (job: SlotJob): Promise<number> =>
      scheduler.run({ slotId: job.slot, choose: unusedForLongest, signal: unlimited() }, async (slot) => {
        const computedTokens = job.tokensToCompute(mark(slot))
        tasks[slot] = started
        started += 1
        await engine.compute({ ...job, computedTokens })
        return slot
      }),
    /** Loads or saves KV of a slot. */
    action,
    /** What the engine reports of its slots. */
    report: (): readonly ReportedSlot[] =>
      tasks.map((task, id) => ({ id, idle: !scheduler.isBusy(id), ...(task < 0 ? {} : { task }) })),
    /** Another mark than before: something ran in the slot since. */
    mark,
    busyMs: engine.busyMs,
    reading: (): EngineReading => {
      const running = tasks.filter((_task, id) => scheduler.isBusy(id)).length
      return { running, waiting: scheduler.waiting(), kvUsage: running / count }
    },
  }
}
