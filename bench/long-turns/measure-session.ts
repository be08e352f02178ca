import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { nanoid } from 'nanoid'
import { contentKeyOf } from '../../src/context/session-id.ts'
import type { KvConnector, KvOpening, KvPresence, KvRemoval, KvTurn } from '../../src/kvcache/kv-connector.ts'
import type { SessionKey, StoredKv, TenantKey } from '../../src/sessions/session-record.ts'
import type { Fleet } from './fleet.ts'
import { promptTokens } from './prompts.ts'

/** What a turn took, milliseconds. */
export interface TurnFigures {
  /** From the request to the pod's being ready, as the client waits for it. */
  readonly beginMs: number
  /** What the gateway's thread computed: before the turn went on, while the pod computed it and told of it, and after its end, with the removal of what it replaced. */
  readonly cpuMs: { readonly begin: number; readonly events: number; readonly end: number }
}

/** One session: the turn that opens it, one more on the same pod, and one that the other pod gets, for which its KV is loaded. */
export interface SessionTurns {
  readonly first: TurnFigures
  readonly samePod: TurnFigures
  readonly otherPod: TurnFigures
}

export interface SessionFigures extends SessionTurns {
  /** What the gateway's thread computes to remove the session, milliseconds. */
  readonly removalCpuMs: number
}

/** What a conversation of so many tokens begins with. */
export interface BenchSession {
  readonly seed: number
  readonly tokens: number
  readonly opening: KvOpening
}

export const newSession = (model: string, seed: number, tokens: number): BenchSession => {
  const body = Buffer.from(JSON.stringify({ model, prompt: Array.from(promptTokens(seed, tokens)) }))
  return { seed, tokens, opening: { form: 'completions', body } }
}

/** A question and an answer. */
const tokensPerTurn = 512
const turnsPerSession = 3
const timeoutMs = 60_000

export const measureSession = async (
  fleet: Fleet,
  connector: KvConnector,
  session: BenchSession,
): Promise<SessionFigures> => {
  const { turns, remove } = await play(fleet, connector, session)
  const [, removalCpuMs] = await computedDuring(remove)
  return { ...turns, removalCpuMs }
}

const play = async (
  fleet: Fleet,
  connector: KvConnector,
  session: BenchSession,
): Promise<{ readonly turns: SessionTurns; readonly remove: () => Promise<void> }> => {
  const id = `ctx_${nanoid(32)}`
  const key = nanoid() as SessionKey
  let kv: StoredKv | undefined

  const removeAll = async (kind: KvRemoval['kind'], { payload }: StoredKv): Promise<void> => {
    const outcome = await connector.remove({ kind, session: key, payload }, AbortSignal.timeout(timeoutMs))
    if (outcome.kind !== 'removed') throw new Error(`what a turn replaced is ${outcome.reason}`)
  }

  const take = async (turn: {
    readonly number: number
    readonly pod: 0 | 1
    readonly expected: KvPresence['kind']
  }): Promise<TurnFigures> => {
    const tokens = session.tokens + turn.number * tokensPerTurn
    const kvTurn: KvTurn = {
      session: key,
      tenant: 'tenant' as TenantKey,
      model: fleet.model,
      turnId: nanoid(),
      pod: fleet.pods[turn.pod]?.address ?? '',
      contentKey: () => contentKeyOf(id),
      ...(turn.number > 0 ? {} : { opening: session.opening }),
    }
    const startedMs = performance.now()
    const [attached, begin] = await computedDuring(() =>
      connector.attach(kvTurn, kv, { signal: AbortSignal.timeout(timeoutMs) }),
    )
    const beginMs = performance.now() - startedMs
    if (attached.presence.kind !== turn.expected)
      throw new Error(`turn ${turn.number} met ${attached.presence.kind} instead of ${turn.expected}`)
    const [, events] = await computedDuring(() =>
      fleet.run({ pod: turn.pod, seed: session.seed, tokens, fields: attached.fields }),
    )
    const [stored, end] = await computedDuring(async () => {
      const offloaded = await connector.offload({
        turn: kvTurn,
        claim: attached.claim,
        totalTokens: tokens + 4,
        promptTokens: tokens,
        announce: async () => {},
        signal: AbortSignal.timeout(timeoutMs),
      })
      if (offloaded.kind !== 'stored') throw new Error(`turn ${turn.number} ended ${JSON.stringify(offloaded)}`)
      if (kv !== undefined) await removeAll('artefact', kv)
      return offloaded
    })
    kv = { ...stored, turn: turn.number }
    return { beginMs, cpuMs: { begin, events, end } }
  }

  const turns = {
    first: await take({ number: 0, pod: 0, expected: 'empty' }),
    samePod: await take({ number: 1, pod: 0, expected: 'resident' }),
    otherPod: await take({ number: 2, pod: 1, expected: 'loaded' }),
  }
  const remove = async (): Promise<void> => {
    if (kv !== undefined) await removeAll('session', kv)
  }
  return { turns, remove }
}

/** What the gateway's thread computes for each turn while so many sessions go on at once, milliseconds. */
export const measureTogether = async (
  fleet: Fleet,
  connector: KvConnector,
  sessions: readonly BenchSession[],
): Promise<number> => {
  const [played, cpuMs] = await computedDuring(() =>
    Promise.all(sessions.map((session) => play(fleet, connector, session))),
  )
  await Promise.all(played.map(({ remove }) => remove()))
  return cpuMs / (sessions.length * turnsPerSession)
}

/** What comes of it, and what the gateway's one thread of JavaScript computed meanwhile, milliseconds. */
const computedDuring = async <T>(act: () => Promise<T>): Promise<readonly [T, number]> => {
  const beforeMs = threadCpuMs()
  const result = await act()
  return [result, threadCpuMs() - beforeMs]
}

/** Linux's account of the calling thread, in nanoseconds. */
const threadCpuMs = (): number => Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1_000_000
