import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { EngineField } from '../../src/kvcache/kv-connector.ts'

/** A prompt for one of the two pods. */
export interface FleetRequest {
  readonly pod: 0 | 1
  readonly seed: number
  readonly tokens: number
  readonly fields: Readonly<Record<string, EngineField>>
}

export interface FleetReady {
  readonly coordinator: string
  readonly model: string
  readonly pods: readonly { readonly address: string; readonly instance: string }[]
}

export type FleetAnswer =
  | ({ readonly kind: 'ready' } & FleetReady)
  | { readonly kind: 'ran'; readonly number: number }
  | { readonly kind: 'failed'; readonly number: number; readonly reason: string }

/** A simulated fleet in a process of its own. */
export interface Fleet extends FleetReady {
  /** Resolves when the prompt is answered. */
  run(request: FleetRequest): Promise<void>
  stop(): void
}

export const startFleet = async (): Promise<Fleet> => {
  const child = fork(fileURLToPath(new URL('fleet-process.js', import.meta.url)))
  const waiting = new Map<number, (failure: string | undefined) => void>()
  let requests = 0
  const ready = await new Promise<FleetReady>((resolve, reject) => {
    child.on('message', (answer: FleetAnswer) => {
      if (answer.kind === 'ready') return resolve(answer)
      waiting.get(answer.number)?.(answer.kind === 'failed' ? answer.reason : undefined)
      waiting.delete(answer.number)
    })
    child.on('exit', (code) => {
      const failure = `the fleet's process ended with ${code}`
      reject(new Error(failure))
      for (const settle of waiting.values()) settle(failure)
    })
  })
  return {
    ...ready,
    run: (request) =>
      new Promise((resolve, reject) => {
        requests += 1
        waiting.set(requests, (failure) => (failure === undefined ? resolve() : reject(new Error(failure))))
        child.send({ ...request, number: requests })
      }),
    stop: () => void child.kill('SIGKILL'),
  }
}
