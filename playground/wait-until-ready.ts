import { get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describeExit, type ManagedChild } from './child-process.ts'

/** What tells that a server takes requests. */
export type ReadyProbe =
  /** A line it printed, before or after the wait began. */
  | { readonly kind: 'line'; readonly pattern: RegExp }
  /** A GET that is answered 200; with `mayRefuse`, one that is answered at all, other than by a fault (500 and more). */
  | { readonly kind: 'http'; readonly url: string; readonly mayRefuse?: boolean }
  /** A port of 127.0.0.1 that accepts a connection. */
  | { readonly kind: 'tcp'; readonly port: number }
  /** Anything else; asked again and again until it is true, never rejects. `description` completes "waiting for …". */
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
const shownLines = 40

/**
 * Waits until the probe succeeds; a child that does not become ready is of no use, and is killed before the error is thrown.
 * @throws NotReadyError, or the signal's reason
 */
export const readyOrKilled = async (
  child: ManagedChild,
  probe: ReadyProbe,
  options: WaitUntilReadyOptions = {},
): Promise<void> => {
  try {
    await waitUntilReady(child, probe, options)
  } catch (error) {
    await child.kill()
    throw error
  }
}

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
    case 'http': {
      const isReady = (status: number) => (probe.mayRefuse === true ? status < 500 : status === 200)
      return { description: probe.url, check: async () => isReady((await httpGet(probe.url))?.status ?? 599) }
    }
    case 'tcp':
      return { description: `port ${probe.port}`, check: () => accepts(probe.port) }
    case 'check':
      return probe
  }
}

/** GETs a small text over a connection of its own, so that none stays open towards a server that is then stopped. Undefined: no answer. */
export const httpGet = (
  url: string,
  { timeoutMs = 1000 }: { readonly timeoutMs?: number } = {},
): Promise<{ readonly status: number; readonly body: string } | undefined> =>
  new Promise((resolve) => {
    const fail = (): void => resolve(undefined)
    const request = get(url, { agent: false }, (response) => {
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', (text: string) => {
          body += text
        })
        .on('end', () => resolve({ status: response.statusCode ?? 0, body }))
        .on('error', fail)
    })
    const timer = setTimeout(() => request.destroy(), timeoutMs)
    request.on('error', fail).on('close', () => {
      clearTimeout(timer)
      fail()
    })
  })

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

const notReady = (child: ManagedChild, what: string): NotReadyError => {
  const lines = child.output().slice(-shownLines)
  const printed = lines.length === 0 ? ' It printed nothing.' : ` It printed last:\n${lines.join('\n')}`
  return new NotReadyError(`${child.name} ${what}.${printed}`)
}
