import { setTimeout as delay } from 'node:timers/promises'
import { describeExit, describeOutput, type ManagedChild } from './child-process.ts'

/** How a server shows that it accepts requests. */
export type ReadyProbe =
  /** A line that it printed, before or after the wait began. */
  | { readonly kind: 'line'; readonly pattern: RegExp }
  /** A GET that is answered 200. */
  | { readonly kind: 'http'; readonly url: string }
  /** Anything else; called until it resolves to true, never rejects. `description` completes "waiting for …". */
  | { readonly kind: 'check'; readonly description: string; readonly check: () => Promise<boolean> }

export interface WaitUntilReadyOptions {
  /** Default: 10,000. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Thrown when a server ended, or was not ready in time; the message ends with what it printed last. */
export class NotReadyError extends Error {
  override readonly name = 'NotReadyError'
}

const pollMs = 20

/**
 * Waits until the probe succeeds. Fails at once when the child ends. The child is not touched.
 * @throws NotReadyError, or the signal's reason
 */
export const waitUntilReady = async (
  child: ManagedChild,
  probe: ReadyProbe,
  { timeoutMs = 10_000, signal }: WaitUntilReadyOptions = {},
): Promise<void> => {
  const untilMs = performance.now() + timeoutMs
  const { description, check } = attemptOf(child, probe)
  while (!(await check())) {
    signal?.throwIfAborted()
    if (!child.isRunning()) throw notReady(child, `${describeExit(await child.exited)} before it was ready`)
    if (performance.now() > untilMs) {
      throw notReady(child, `was not ready after ${timeoutMs} ms, waiting for ${description}`)
    }
    await Promise.race([delay(pollMs), child.exited])
  }
  signal?.throwIfAborted()
}

/** What an attempt is called, and one attempt. */
const attemptOf = (
  child: ManagedChild,
  probe: ReadyProbe,
): { readonly description: string; readonly check: () => Promise<boolean> } => {
  switch (probe.kind) {
    case 'line': {
      const check = async () => child.output().some((line) => probe.pattern.test(line))
      return { description: `a line like ${probe.pattern}`, check }
    }
    case 'http':
      return { description: probe.url, check: async () => (await httpGet(probe.url))?.status === 200 }
    case 'check':
      return probe
  }
}

/** GETs a small text over a connection of its own, so that none stays open towards a server that is then stopped. Undefined: no answer. */
export const httpGet = async (
  url: string,
  { timeoutMs = 1000 }: { readonly timeoutMs?: number } = {},
): Promise<{ readonly status: number; readonly body: string } | undefined> => {
  try {
    const response = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(timeoutMs) })
    return { status: response.status, body: await response.text() }
  } catch {
    return undefined
  }
}

const notReady = (child: ManagedChild, what: string): NotReadyError =>
  new NotReadyError(`${child.name} ${what}.${describeOutput(child)}`)
