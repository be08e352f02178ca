import type { FleetSettings } from '../fleet-settings.ts'
import type { VirtualTime } from '../virtual-time.ts'
import type { Processors } from './processors.ts'

/** Prompt tokens of one request in one step, as the embedded engine has it. */
const pieceTokens = 256

/** A request that an engine computes. */
export interface Computation {
  /** Tokens of the prompt that are not there. */
  readonly computedTokens: number
  readonly outputTokens: number
  onFirstToken(): void
}

interface Running {
  readonly computation: Computation
  /** Left of the prompt, without its last token, which the first token of the answer comes out of. */
  promptLeft: number
  answerLeft: number
  readonly complete: () => void
}

interface Exclusive {
  readonly durationMs: number
  readonly complete: () => void
}

/**
 * What one engine computes, step by step. A step takes a piece of every prompt, and a token of every answer, so that
 * prompts advance together. Between two steps KV is loaded or saved, while nothing is computed.
 */
export const createStepEngine = (options: {
  readonly settings: FleetSettings
  readonly time: VirtualTime
  readonly processors: Processors
}) => {
  const { settings, time, processors } = options
  const promptTokenMs = 1000 / settings.prefillTokensPerSecond
  const answerTokenMs = 1000 / settings.decodeTokensPerSecond
  const running = new Set<Running>()
  const exclusives: Exclusive[] = []
  let isBusy = false
  let prefillMs = 0
  let exclusiveMs = 0

  const take = (durationMs: number, done: () => void): void => {
    isBusy = true
    processors.compute(durationMs, () => {
      isBusy = false
      done()
      proceed()
    })
  }

  const endStep = (step: readonly (readonly [request: Running, piece: number])[]): void => {
    for (const [request, piece] of step) {
      if (piece > 0) {
        request.promptLeft -= piece
        continue
      }
      if (request.answerLeft === request.computation.outputTokens) request.computation.onFirstToken()
      request.answerLeft -= 1
      if (request.answerLeft > 0) continue
      running.delete(request)
      request.complete()
    }
  }

  const proceed = (): void => {
    if (isBusy) return
    const exclusive = exclusives.shift()
    if (exclusive !== undefined) {
      exclusiveMs += exclusive.durationMs
      take(exclusive.durationMs, exclusive.complete)
      return
    }
    if (running.size === 0) return
    const step = [...running].map((request) => [request, Math.min(pieceTokens, request.promptLeft)] as const)
    const promptMs = step.reduce((sum, [, piece]) => sum + piece, 0) * promptTokenMs
    const answers = step.filter(([, piece]) => piece === 0).length
    prefillMs += promptMs
    take(promptMs + (answers > 0 ? answerTokenMs : 0), () => endStep(step))
  }

  /** After all that happens at this time, so that what arrives together begins together. */
  const proceedSoon = (): void => time.at(time.nowMs(), proceed)

  return {
    /** Resolves when the answer is complete. */
    compute: (computation: Computation): Promise<void> =>
      new Promise((complete) => {
        const { computedTokens, outputTokens } = computation
        running.add({ computation, promptLeft: Math.max(0, computedTokens - 1), answerLeft: outputTokens, complete })
        proceedSoon()
      }),
    /** Resolves when a load or a save has ended, which takes so long alone. */
    exclusive: (durationMs: number): Promise<void> =>
      new Promise((complete) => {
        exclusives.push({ durationMs, complete })
        proceedSoon()
      }),
    busyMs: (): { readonly prefill: number; readonly load: number } => ({ prefill: prefillMs, load: exclusiveMs }),
  }
}
