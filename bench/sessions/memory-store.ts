import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ExpiryFigures, ExpiryOptions } from './expiry.ts'
import type { Footprint } from './fill.ts'
import type { Timings } from './measure-operations.ts'

export type MeasureTask = { readonly lookups: number; readonly creates: number; readonly round: number }
export type ExpireTask = Omit<ExpiryOptions, 'series' | 'sessions' | 'onProgress'>

export type MemoryTask =
  | { readonly kind: 'fill' }
  | { readonly kind: 'measure'; readonly options: MeasureTask }
  | { readonly kind: 'expire'; readonly options: ExpireTask }

export type MemoryAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'filled'; readonly footprint: Footprint }
  | { readonly kind: 'measured'; readonly timings: Timings }
  | { readonly kind: 'expired'; readonly figures: ExpiryFigures }
  | { readonly kind: 'failed'; readonly reason: string }

/** A memory store in a process of its own. */
export interface MemoryStoreProcess {
  fill: () => Promise<Footprint>
  measure(options: MeasureTask): Promise<Timings>
  expire(options: ExpireTask): Promise<ExpiryFigures>
  stop(): void
}

const heapMegabytes = 8192

export const startMemoryStore = async (options: {
  readonly sessions: number
  readonly onProgress: (text: string) => void
}): Promise<MemoryStoreProcess> => {
  const child = fork(fileURLToPath(new URL('memory-process.js', import.meta.url)), [String(options.sessions)], {
    execArgv: [`--max-old-space-size=${heapMegabytes}`, '--expose-gc'],
  })
  await nextAnswer(child, options.onProgress)
  const ask = async <Kind extends MemoryAnswer['kind']>(
    task: MemoryTask,
    kind: Kind,
  ): Promise<Extract<MemoryAnswer, { readonly kind: Kind }>> => {
    child.send(task)
    const answer = await nextAnswer(child, options.onProgress)
    if (answer.kind !== kind) throw new Error(answer.kind === 'failed' ? answer.reason : `answered ${answer.kind}`)
    return answer as Extract<MemoryAnswer, { readonly kind: Kind }>
  }
  return {
    fill: async () => (await ask({ kind: 'fill' }, 'filled')).footprint,
    measure: async (task) => (await ask({ kind: 'measure', options: task }, 'measured')).timings,
    expire: async (task) => (await ask({ kind: 'expire', options: task }, 'expired')).figures,
    stop: () => void child.kill('SIGKILL'),
  }
}

const nextAnswer = (child: ChildProcess, onProgress: (text: string) => void): Promise<MemoryAnswer> =>
  new Promise((resolve, reject) => {
    const settle = (): void => {
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
    const onMessage = (answer: MemoryAnswer): void => {
      if (answer.kind === 'progress') {
        onProgress(answer.text)
        return
      }
      settle()
      resolve(answer)
    }
    const onExit = (code: number | null): void => {
      settle()
      reject(new Error(`the memory store's process ended with ${code}`))
    }
    child.on('message', onMessage).on('exit', onExit)
  })
