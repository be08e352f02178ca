import { type ManagedChild, type StartChildOptions, startChild } from './child-process.ts'
import { type ReadyProbe, waitUntilReady } from './wait-until-ready.ts'

/** What the servers of one run have in common. `env` also decides where their programs are found. */
export interface Launch extends Pick<StartChildOptions, 'env' | 'onLine' | 'children'> {
  /** Default: two minutes. */
  readonly readyTimeoutMs?: number | undefined
  /** Ends a start in progress. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Starts a server and waits until it is ready. A server that does not become ready is killed.
 * @throws NotReadyError, or the signal's reason
 */
export const startServer = async (
  options: StartChildOptions & Launch & { readonly ready: ReadyProbe },
): Promise<ManagedChild> => {
  const { ready, readyTimeoutMs: timeoutMs, signal } = options
  signal?.throwIfAborted()
  const child = await startChild(options)
  try {
    await waitUntilReady(child, ready, { timeoutMs, signal })
  } catch (error) {
    await child.kill()
    throw error
  }
  return child
}
