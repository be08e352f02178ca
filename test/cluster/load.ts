import { setTimeout as delay } from 'node:timers/promises'
import { model } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'

/** What a load has seen. */
export interface LoadReport {
  readonly sent: number
  /** Answers by what became of their KV. */
  readonly outcomes: ReadonlyMap<string, number>
  /** One line for each request without a whole answer of status 200, and for each session that is gone at the end. */
  readonly failures: readonly string[]
}

/** Requests that go on until `stop`, which resolves once all are answered. */
export interface Load {
  /** Resolves once a hundred more requests are answered, and contexts are used. */
  goOn(): Promise<void>
  /** Without Redis no context is made. */
  stopCreating(): void
  stop(): Promise<LoadReport>
}

const requestsPerSecond = 30
const longStreams = 2
/** The sessions made last, which turns use. */
const sessions = 30
const headers = { authorization: 'Bearer load', 'content-type': 'application/json' }
const prompt = 'What the pods of a cluster have in common is a network. '

type Kind = 'create' | 'turn' | 'streamed turn' | 'plain' | 'long stream'

const mix: readonly Kind[] = [
  'turn',
  'streamed turn',
  'plain',
  'turn',
  'turn',
  'create',
  'turn',
  'plain',
  'turn',
  'streamed turn',
]

/** Sends turns with and without a session, streams and creates at a steady rate, beside a few longer streams. */
export const startLoad = (url: string): Load => {
  const made: string[] = []
  const failures: string[] = []
  const open = new Set<Promise<void>>()
  const startedMs = performance.now()
  let sent = 0
  const outcomes = new Map<string, number>()
  let isStopped = false
  let creates = true

  const ask = async (kind: Kind): Promise<string | undefined> => {
    const recent = made.slice(-sessions)
    const id =
      kind === 'turn' || kind === 'streamed turn' ? recent[Math.floor(Math.random() * recent.length)] : undefined
    const stream = kind === 'streamed turn' || kind === 'long stream'
    const answer = await fetch(`${url}/v1/${kind === 'create' ? 'context' : 'completions'}`, {
      method: 'POST',
      headers: { ...headers, ...(id === undefined ? {} : { 'x-session-id': id }) },
      body: JSON.stringify({ model, prompt, stream, temperature: 0, max_tokens: kind === 'long stream' ? 60 : 2 }),
      signal: AbortSignal.timeout(200_000),
    })
    const text = await answer.text()
    const isWhole = stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}')
    if (answer.status !== 200 || !isWhole)
      return `${answer.status} ${JSON.stringify([...answer.headers])} ${text.slice(-300)}`
    const outcome = answer.headers.get('x-context-cache')?.replace(/; tokens=.*/, '') ?? kind
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    const created = answer.headers.get('x-session-id')
    if (kind === 'create' && created !== null) made.push(created)
    return undefined
  }

  const send = (kind: Kind): Promise<void> => {
    sent += 1
    const at = Math.round(performance.now() - startedMs)
    const request = ask(kind)
      .catch((error: unknown) => `${String(error)} ${error instanceof Error ? String(error.cause) : ''}`)
      .then((failure) => {
        open.delete(request)
        const took = Math.round(performance.now() - startedMs - at)
        if (failure !== undefined) failures.push(`${kind} at ${at} ms for ${took} ms: ${failure}`)
      })
    open.add(request)
    return request
  }

  /** Asks for every session that the load has made, one after the other. */
  const findSessions = async (): Promise<void> => {
    for (const id of made) {
      const { status } = await fetch(`${url}/v1/context/${id}`, { headers })
      if (status !== 200) failures.push(`a session is gone: ${status}`)
    }
  }

  const stream = async (): Promise<void> => {
    while (!isStopped) await send('long stream')
  }
  const streams = Array.from({ length: longStreams }, stream)
  const run = async (): Promise<void> => {
    for (let turn = 0; !isStopped; turn += 1) {
      const kind = mix[turn % mix.length] ?? 'plain'
      // Beyond this the machine is too slow for the rate.
      if (open.size < 30) void send(kind === 'create' && !creates ? 'turn' : kind)
      await delay(1000 / requestsPerSecond)
    }
  }
  const running = run()
  return {
    goOn: async () => {
      const before = sent - open.size
      await eventually(
        () => [...outcomes.keys()].some((one) => one.startsWith('hit')) && sent - open.size > before + 100,
      )
    },
    stopCreating: () => {
      creates = false
    },
    stop: async () => {
      isStopped = true
      await Promise.all([running, ...streams, ...open])
      await findSessions()
      return { sent, outcomes, failures }
    },
  }
}
