import { setTimeout as delay } from 'node:timers/promises'
import { describeExit, type ManagedChild } from './child-process.ts'
import type { Report } from './run-command.ts'

/** Starts a server that is to run until the end of everything. `lost`: what its end costs, for the line about it. */
export type StartServer = <T extends { readonly child: ManagedChild }>(
  start: () => Promise<T>,
  lost?: string,
) => Promise<T>

const [firstDelayMs, maxDelayMs] = [250, 10_000]

/**
 * Starts servers, and starts each again that ends by itself, until `signal`. `start` is called each time, and has to
 * take the same ports. The pause before it doubles up to 10 s, and is a quarter of a second again after as long a run.
 */
export const createKeeper =
  ({ report, signal }: { readonly report: Report; readonly signal: AbortSignal }): StartServer =>
  async (start, lost = '') => {
    const first = await start()
    const restart = async (delayMs: number): Promise<ManagedChild | undefined> => {
      try {
        await delay(delayMs, undefined, { signal })
        return (await start()).child
      } catch (error) {
        if (!signal.aborted) report(error instanceof Error ? error.message : String(error))
        return undefined
      }
    }
    const keep = async (): Promise<void> => {
      let running: ManagedChild | undefined = first.child
      for (let delayMs = firstDelayMs; !signal.aborted; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
        const startedMs = performance.now()
        const exit = await running?.exited
        if (exit !== undefined && !signal.aborted) {
          report(`${first.child.name} ${describeExit(exit)}, restarting${lost}`)
          if (performance.now() - startedMs > maxDelayMs) delayMs = firstDelayMs
        }
        running = await restart(delayMs)
      }
    }
    void keep()
    return first
  }
