import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ManagedChild } from './child-process.ts'
import { startDeadline } from './deadline.ts'
import { httpGet } from './http-get.ts'

/** What tells that a server takes requests. */
export type ReadyProbe =
  /** A line it printed, before or after the wait began. */
  | { readonly kind: 'line'; readonly pattern: RegExp }
  /** A GET that is answered 200; with `mayRefuse`, one that is answered at all, other than by a fault (500 and more). */
  | { readonly kind: 'http'; readonly url: string; readonly mayRefuse?: boolean }
  /** A port of 127.0.0.1 that accepts a connection. */
  | { readonly kind: 'tcp'; readonly port: number }
  /** Anything else; asked again and again until it is true, never rejects. `description` completes "waiting for …". */
  | {
      readonly kind: 'check'
      readonly description: string
      readonly check: (signal: AbortSignal) => Promise<boolean>
    }

/** How long to wait. */
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
const attemptTimeoutMs = 1000
const shownLines = 40

/**
 * Waits until the probe succeeds. Fails at once when the child ends. The child is left as it is.
 * @throws NotReadyError, or the signal's reason
 */
export async function waitUntilReady(
  child: ManagedChild,
  probe: ReadyProbe,
  options: WaitUntilReadyOptions = {},
): Promise<void> {
  const timeoutMs = options.timeoutMs ?? 10_000
  const deadline = startDeadline({ timeoutMs, signal: options.signal })
  try {
    const outcome = await Promise.race([
      probeUntilAborted(child, probe, deadline.signal),
      child.exited.then((exit) => `ended with ${exit.signal ?? `status ${exit.code}`} before it was ready`),
    ])
    if (outcome === 'ready') return
    if (outcome !== 'aborted') throw notReady(child, outcome)
    options.signal?.throwIfAborted()
    throw notReady(child, `was not ready after ${timeoutMs} ms, waiting for ${describe(probe)}`)
  } finally {
    deadline.end()
  }
}

/**
 * `waitUntilReady` for a server that is of no use otherwise: it is ended before the error is thrown.
 * @throws NotReadyError, or the signal's reason
 */
export async function readyOrKilled(
  child: ManagedChild,
  probe: ReadyProbe,
  options: WaitUntilReadyOptions = {},
): Promise<void> {
  try {
    await waitUntilReady(child, probe, options)
  } catch (error) {
    await child.kill()
    throw error
  }
}

async function probeUntilAborted(
  child: ManagedChild,
  probe: ReadyProbe,
  signal: AbortSignal,
): Promise<'ready' | 'aborted'> {
  if (probe.kind === 'line') return lineSeen(child, probe.pattern, signal)
  while (!signal.aborted) {
    if (await attempt(probe, signal)) return 'ready'
    await delay(pollMs, undefined, { signal }).catch(() => undefined)
  }
  return 'aborted'
}

function lineSeen(child: ManagedChild, pattern: RegExp, signal: AbortSignal): Promise<'ready' | 'aborted'> {
  return new Promise((resolve) => {
    const matches = (line: string): boolean => line.search(pattern) >= 0
    const stopListening = child.onLine((line) => {
      if (matches(line)) settle('ready')
    })
    const settle = (outcome: 'ready' | 'aborted'): void => {
      stopListening()
      resolve(outcome)
    }
    signal.addEventListener('abort', () => settle('aborted'), { once: true })
    if (signal.aborted) settle('aborted')
    else if (child.output().some(matches)) settle('ready')
  })
}

async function attempt(probe: Exclude<ReadyProbe, { kind: 'line' }>, signal: AbortSignal): Promise<boolean> {
  switch (probe.kind) {
    case 'tcp':
      return accepts(probe.port, signal)
    case 'check':
      return probe.check(signal)
    case 'http': {
      const answer = await httpGet(probe.url, { timeoutMs: attemptTimeoutMs, signal })
      return answer.ok && (probe.mayRefuse === true ? answer.status < 500 : answer.status === 200)
    }
  }
}

function accepts(port: number, signal: AbortSignal): Promise<boolean> {
  const deadline = startDeadline({ timeoutMs: attemptTimeoutMs, signal })
  return new Promise<boolean>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, signal: deadline.signal })
    socket.once('connect', () => resolve(true)).on('error', () => resolve(false))
  }).finally(() => deadline.end())
}

function describe(probe: ReadyProbe): string {
  switch (probe.kind) {
    case 'line':
      return `a line like ${probe.pattern}`
    case 'http':
      return `${probe.mayRefuse === true ? 'a status below 500' : '200'} from ${probe.url}`
    case 'tcp':
      return `port ${probe.port}`
    case 'check':
      return probe.description
  }
}

function notReady(child: ManagedChild, what: string): NotReadyError {
  const lines = child.output().slice(-shownLines)
  const printed = lines.length === 0 ? ' It printed nothing.' : ` It printed last:\n${lines.join('\n')}`
  return new NotReadyError(`${child.name} ${what}.${printed}`)
}
