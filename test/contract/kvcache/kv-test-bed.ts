import { createHash } from 'node:crypto'
import { expect } from '@jest/globals'
import type { SessionKey, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import type { AttachOutcome, EngineField, KvConnector, KvTurn, OffloadOutcome } from './old-kv-port.ts'

/** Token counts of one response, as the engine reports them. */
export interface TestUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** A real engine. */
export interface TestPod {
  /** As the connector knows it. */
  readonly address: string
  /** Completes a prompt with a few tokens. `sessionId` is sent as `x-session-id`. */
  run(request: {
    readonly prompt: string
    readonly sessionId?: string
    readonly fields?: Readonly<Record<string, EngineField>>
  }): Promise<TestUsage>
  /** How many tokens of the prompt are anywhere in the pod, for any session. Leaves the prompt there. */
  probe(prompt: string): Promise<number>
  /** Number of loads that the gateway requested from the pod. */
  loads(): number
  /** Keeps loads from reaching the engine until the returned function is called. */
  holdLoads(): () => void
  /** Kills the engine and starts it again at its address. */
  restart(): Promise<void>
}

/** Two pods, one store, and any number of connectors, as in several gateway processes. */
export interface KvTestBed {
  readonly pods: readonly [TestPod, TestPod]
  /** A connector that shares all state with the others of this bed. Artefacts of any age count as orphans. */
  connect(options?: { readonly callTimeoutMs?: number; readonly pods?: readonly string[] }): KvConnector
  /** Names of the artefacts in the store. */
  artefacts(): Promise<readonly string[]>
  /** Changes stored bytes of an artefact, or truncates it. */
  damage(artefactId: string, how: Damage): Promise<void>
  /** Deletes the state that the connectors share. */
  loseState(): void
  close(): Promise<void>
}

/** Where connectors may differ. Functions receive the number of stored tokens. */
export interface KvTraits {
  /** A prompt that differs from all others at its first token, and is long enough to be stored. */
  readonly newPrompt: () => string
  /** Text that makes a prompt grow enough for more of it to be stored. */
  readonly more: string
  /** How many tokens may be stored of a first turn. */
  readonly storedTokens: (usage: TestUsage) => readonly number[]
  /** Whether more is stored as the conversation grows. */
  readonly grows: boolean
  /** The presence on a pod that does not hold the KV. */
  readonly onAnotherPod: (tokens: number) => object
  /** Whether the gateway has the pod load KV before a turn, or the engine loads it by itself. */
  readonly loadedBy: 'gateway' | 'engine'
  /** The presence after one turn, on its pod. */
  readonly onItsPod: (tokens: number) => object
  /** The presence after several turns, on the pod of the last one. */
  readonly onItsLastPod: (tokens: number) => object
  /** The presence on the pod of an earlier turn than the last. */
  readonly onItsFormerPod: (tokens: number) => object
  /** The presence on its pod after the artefact was removed. */
  readonly afterItsArtefact: (tokens: number) => object
  /** How many of 20 turns that overlap on two gateways find the KV. */
  readonly hitsOfTwoGateways: number
  /** Possible numbers of their loads. */
  readonly loadsOfTwoGateways: readonly number[]
  /** Possible outcomes of the offloads of two overlapping turns, in the order of their ends. */
  readonly overlappingTurns: readonly (readonly string[])[]
  /** The presence of an artefact whose payload the connector cannot read. */
  readonly unreadable: 'missing' | 'incompatible'
  /** Whether a removal waits for the session's turns. */
  readonly removalDuringTurn: 'busy' | 'removed'
  /** Whether a turn that another pod served is stored. */
  readonly servedElsewhere: 'lost' | 'stored'
  /** Whether a conversation can be too short to be stored. */
  readonly storesShort: boolean
  /** Whether sessions of one tenant use each other's KV. */
  readonly sharing: 'nobody' | 'tenant'
  /** Outcome of the offload of a turn whose artefact was missing. */
  readonly afterMissing: 'stored' | 'none'
  /** Damage that is detected: by the connector (`missing`), or by the engine alone (`on-demand`). */
  readonly damage: readonly [Damage, ...Damage[]]
  readonly damaged: 'missing' | 'on-demand'
  /** Fields of a turn that continues without its KV. */
  readonly fieldsAlone: object
  /** The presence on an unreachable pod, of a session without KV. */
  readonly unreachable: 'failed' | 'empty'
  /** What `reconcile` removes: artefacts unknown to the sessions, or nothing. */
  readonly orphans: 'unknown' | 'none'
}

export type Damage = 'changed' | 'cut'

export interface TestSession {
  readonly id: string
  readonly key: SessionKey
  readonly tenant: TenantKey
}

let sessions = 0

export const newSession = (tenant = 'tenant'): TestSession => {
  sessions += 1
  const id = `ctx_${String(sessions).padStart(32, '0')}`
  const key = createHash('sha256').update(id).digest('base64url') as SessionKey
  return { id, key, tenant: createHash('sha256').update(tenant).digest('base64url') as TenantKey }
}

let turns = 0

export const turnOf = ({ key, tenant }: TestSession, pod: Pick<TestPod, 'address'>): KvTurn => {
  turns += 1
  return { session: key, tenant, model: 'tiny', turnId: `turn-${turns}`, pod: pod.address }
}

let prompts = 0

const [firstLetter, letters] = [0x21, 90]

/** About 400 tokens of which not even the first character is that of the 89 prompts before. */
export const newPrompt = (): string => {
  prompts += 1
  return `${String.fromCharCode(firstLetter + (prompts % letters))} ${prompts} is where this conversation begins. ${'It goes on about caches. '.repeat(16)}`
}

/** Traits of llamacpp-slots: a slot holds one session at a time, and its file holds the whole conversation. */
export const slotTraits: KvTraits = {
  newPrompt,
  more: ' And one more question.',
  storedTokens: ({ promptTokens, outputTokens }) => [promptTokens + outputTokens, promptTokens + outputTokens - 1],
  grows: true,
  onAnotherPod: (tokens) => ({ kind: 'loaded', tokens, loadMs: expect.any(Number) }),
  loadedBy: 'gateway',
  onItsPod: (tokens) => ({ kind: 'resident', tokens }),
  onItsLastPod: (tokens) => ({ kind: 'resident', tokens }),
  onItsFormerPod: (tokens) => ({ kind: 'loaded', tokens }),
  afterItsArtefact: (tokens) => ({ kind: 'resident', tokens }),
  // As many as there are slots.
  hitsOfTwoGateways: 2,
  loadsOfTwoGateways: [2],
  overlappingTurns: [['stored', 'stored']],
  unreadable: 'incompatible',
  removalDuringTurn: 'busy',
  servedElsewhere: 'lost',
  storesShort: false,
  sharing: 'nobody',
  afterMissing: 'stored',
  damage: ['changed', 'cut'],
  damaged: 'missing',
  fieldsAlone: { id_slot: -1, cache_prompt: false, cache_salt: expect.any(String) },
  unreachable: 'failed',
  orphans: 'unknown',
}

export const anySignal = (): AbortSignal => AbortSignal.timeout(20_000)

/** One turn from attach to offload. */
export interface ServedTurn {
  readonly attached: AttachOutcome
  readonly usage: TestUsage
  readonly offloaded: OffloadOutcome
  /** The KV that the session has stored after the turn. */
  readonly kv: StoredKv | undefined
}

export const serveTurn = async (
  connector: KvConnector,
  request: {
    readonly session: TestSession
    readonly pod: TestPod
    readonly prompt: string
    readonly kv?: StoredKv | undefined
  },
): Promise<ServedTurn> => {
  const { session, pod, prompt, kv } = request
  const turn = turnOf(session, pod)
  const attached = await connector.attach(turn, kv, { signal: anySignal() })
  const usage = await pod.run({ prompt, sessionId: session.id, fields: attached.fields })
  const offloaded = await connector.offload({
    turn,
    claim: attached.claim,
    totalTokens: usage.promptTokens + usage.outputTokens,
    promptTokens: usage.promptTokens,
    announce: async () => {},
    signal: anySignal(),
  })
  return { attached, usage, offloaded, kv: storedKv(offloaded) ?? kv }
}

export const storedKv = (offloaded: OffloadOutcome): StoredKv | undefined =>
  offloaded.kind === 'stored'
    ? {
        artefactId: offloaded.artefactId,
        payload: offloaded.payload,
        tokens: offloaded.tokens,
        bytes: offloaded.bytes,
        turn: 1,
      }
    : undefined
