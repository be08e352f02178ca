// The engine behind the HTTP interface: tasks get their slot, run, and give it back.
import type { InferenceRuntime } from '../runtime/inference-runtime.ts'
import { pickSlot } from '../slots/pick-slot.ts'
import { createSlot, type Slot } from '../slots/slot.ts'
import { createSlotScheduler } from '../slots/slot-scheduler.ts'
import { loadStateFile, saveStateFile } from '../slots/state-file.ts'
import type { StateFolder } from '../slots/state-folder.ts'
import type { GenerationEvent, GenerationRequest } from './generation.ts'
import { runGeneration } from './run-generation.ts'

/** A slot as it is reported. */
export interface SlotReport {
  readonly id: number
  readonly isProcessing: boolean
  /** Tokens whose KV it holds. */
  readonly tokenCount: number
  readonly sessionHash: string | null
  readonly lastTaskId: number
}

/** What a task on a slot needs to know. */
export interface SlotTask {
  readonly slotId: number
  /** Drops the task while it waits for the slot. Once begun, it is finished. */
  readonly signal: AbortSignal
}

/** What came of an action on a slot. */
export type SlotActionOutcome =
  | { readonly kind: 'done'; readonly tokens: number; readonly bytes: number; readonly elapsedMs: number }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'aborted' }

/** The engine. */
export interface Engine {
  readonly runtime: InferenceRuntime
  /** Computes an answer. The slot is given back when the generator ends or is left. */
  generate(request: GenerationRequest): AsyncGenerator<GenerationEvent, void, undefined>
  /** Writes the slot to a file. Throws when the disk refuses. */
  save(task: SlotTask & { readonly filename: string }): Promise<SlotActionOutcome>
  /** Fills the slot from a file. */
  restore(task: SlotTask & { readonly filename: string }): Promise<SlotActionOutcome>
  /** Empties the slot. */
  erase(task: SlotTask): Promise<SlotActionOutcome>
  hasSlot(slotId: number): boolean
  /** Whether slots can be saved at all. */
  readonly hasStateFolder: boolean
  slots(): readonly SlotReport[]
  /** Tasks that wait for a slot. */
  waiting(): number
}

const invalidFilename: SlotActionOutcome = { kind: 'refused', reason: 'Invalid filename' }

/** Creates the engine. Without `folder`, slots cannot be saved. */
export function createEngine(runtime: InferenceRuntime, folder: StateFolder | undefined): Engine {
  const slots = runtime.sequences.map((sequence, id) => createSlot(id, sequence))
  const scheduler = createSlotScheduler(slots.length)
  let nextTaskId = 0

  const slotOf = (slotId: number): Slot => {
    const slot = slots[slotId]
    if (slot === undefined) throw new RangeError(`there is no slot ${slotId}`)
    return slot
  }

  const beginTask = (slot: Slot, sessionHash: string | null) => {
    slot.lastTaskId = nextTaskId
    slot.sessionHash = sessionHash
    nextTaskId += 1
  }

  const chooseFor =
    ({ tokens, saltHash }: GenerationRequest) =>
    (idleIds: readonly number[]) => {
      const idleSlots = idleIds.map(slotOf).map((slot) => ({ ...slot, tokens: slot.sequence.tokens() }))
      return pickSlot(idleSlots, { tokens, saltHash }) ?? 0
    }

  const inSlot = async (
    { slotId, signal }: SlotTask,
    action: (slot: Slot) => Promise<SlotActionOutcome>,
  ): Promise<SlotActionOutcome> => {
    const grant = await scheduler.acquire({ slotId, signal, choose: () => slotId })
    if (grant.kind === 'aborted') return { kind: 'aborted' }
    try {
      return await action(slotOf(slotId))
    } finally {
      grant.release()
    }
  }

  return {
    runtime,
    hasStateFolder: folder !== undefined,
    hasSlot: (slotId) => slots[slotId] !== undefined,
    waiting: () => scheduler.waiting(),

    slots: () =>
      slots.map((slot) => ({
        id: slot.id,
        isProcessing: scheduler.isBusy(slot.id),
        tokenCount: slot.sequence.tokenCount(),
        sessionHash: slot.sessionHash,
        lastTaskId: slot.lastTaskId,
      })),

    async *generate(request) {
      const { slotId, signal } = request
      const grant = await scheduler.acquire({ slotId, signal, choose: chooseFor(request) })
      if (grant.kind === 'aborted') return
      const slot = slotOf(grant.slotId)
      try {
        beginTask(slot, request.sessionHash)
        yield* runGeneration(slot, request, runtime)
      } catch (error) {
        await slot.sequence.clear()
        throw error
      } finally {
        grant.release()
      }
    },

    async save({ filename, ...task }) {
      const path = folder?.pathOf(filename)
      if (folder === undefined || path === undefined) return invalidFilename
      return await inSlot(task, async ({ sequence, saltHash }) => {
        const startedMs = performance.now()
        const unfinishedPath = folder.unfinishedPath()
        const { fingerprint } = runtime
        const bytes = await saveStateFile(sequence, { path, unfinishedPath, fingerprint, saltHash })
        return { kind: 'done', tokens: sequence.tokenCount(), bytes, elapsedMs: performance.now() - startedMs }
      })
    },

    async restore({ filename, ...task }) {
      const path = folder?.pathOf(filename)
      if (path === undefined) return invalidFilename
      return await inSlot(task, async (slot) => {
        const startedMs = performance.now()
        const { fingerprint, contextTokens } = runtime
        const outcome = await loadStateFile(slot.sequence, { path, fingerprint, maxTokens: contextTokens })
        if (outcome.kind === 'refused') return { kind: 'refused', reason: `Unable to restore slot: ${outcome.reason}` }
        beginTask(slot, null)
        if (outcome.kind === 'cleared') {
          slot.saltHash = ''
          return { kind: 'refused', reason: `Unable to restore slot: ${outcome.reason}` }
        }
        slot.saltHash = outcome.description.saltHash
        const { tokenCount } = outcome.description
        return { kind: 'done', tokens: tokenCount, bytes: outcome.bytes, elapsedMs: performance.now() - startedMs }
      })
    },

    erase: (task) =>
      inSlot(task, async (slot) => {
        const startedMs = performance.now()
        const tokens = slot.sequence.tokenCount()
        await slot.sequence.clear()
        beginTask(slot, null)
        slot.saltHash = ''
        return { kind: 'done', tokens, bytes: 0, elapsedMs: performance.now() - startedMs }
      }),
  }
}
