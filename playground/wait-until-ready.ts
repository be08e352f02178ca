import { setTimeout as delay } from 'node:timers/promises'
import { describeExit, describeOutput, type ManagedChild } from './child-process.ts'

/** How a server shows that it accepts requests. */
export interface ReadyProbe {
  /** Completes "waiting for …". */
  readonly description: string
  /** Called until it resolves to true. Never rejects. */
  readonly check: (child: ManagedChild) => Promise<boolean>
}

/** A line that the server prints, before or after the wait began. */
export const prints = (pattern: RegExp): ReadyProbe => ({
  description: `a line like ${pattern}`,
  check: async (child) => child.output().some((line) => pattern.test(line)),
})

/** A GET that is answered 200. */
export const answers = (url: string): ReadyProbe => ({
  description: url,
  check: async () => (await httpGet(url))?.status === 200,
})

/** Thrown when a server ended, or was not ready in time; the message ends with what it printed last. */
export class NotReadyError extends Error {
  override readonly name = 'NotReadyError'
}

const pollMs = 20
/** Only for servers that hang: one that ends fails at once. On a busy machine an engine needs up to 100 seconds. */
const defaultTimeoutMs = 120_000

/**
 * Waits until the probe succeeds, by default for two minutes. Fails at once when the child ends, which stays as it is.
 * @throws NotReadyError, or the signal's reason
 */
export const waitUntilReady = async (
  child: ManagedChild,
  probe: ReadyProbe,
  { timeoutMs = defaultTimeoutMs, signal }: { timeoutMs?: number | undefined; signal?: AbortSignal | undefined } = {},
): Promise<void> => {
  const untilMs = performance.now() + timeoutMs
  while (!(await probe.check(child))) {
    signal?.throwIfAborted()
    if (!child.isRunning()) throw notReady(child, `${describeExit(await child.exited)} before it was ready`)
    if (performance.now() > untilMs) {
      throw notReady(child, `was not ready after ${timeoutMs} ms, waiting for ${probe.description}`)
    }
    await Promise.race([delay(pollMs), child.exited])
  }
  signal?.throwIfAborted()
}

/** GETs a small text by a connection of its own, which does not outlive the answer. Undefined: no answer. */
export const httpGet = async (url: string): Promise<{ readonly status: number; readonly body: string } | undefined> => {
  try {
    const response = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(1000) })
    return { status: response.status, body: await response.text() }
  } catch {
    return undefined
  }
}

const notReady = (child: ManagedChild, what: string): NotReadyError =>
  new NotReadyError(`${child.name} ${what}.${describeOutput(child)}`)
