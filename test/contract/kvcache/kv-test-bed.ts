import { createHash } from 'node:crypto'
import { createClaimSeal } from '../../../src/kvcache/claim-seal.ts'
import type { KvLog } from '../../../src/kvcache/connector-definition.ts'
import { createKvCache, type KvCache, type PreparedTurn, type SessionTurn } from '../../../src/kvcache/kv-cache.ts'
import type {
  EndedTurn,
  EngineFields,
  FinishOutcome,
  KnownArtefacts,
  KvArtefact,
  KvConnector,
  KvTurn,
  RemoveOutcome,
} from '../../../src/kvcache/kv-connector.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

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
    readonly fields?: EngineFields
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
  /** A prompt that differs from all others at its first token, and is long enough to be stored. */
  newPrompt(): string
  /** Text that makes a prompt grow enough for more of it to be stored. */
  readonly more: string
  /** A connector, as a gateway calls it, which shares all state with the bed's others. Orphans may be of any age. */
  connect(options?: { readonly pods?: readonly string[] }): KvCache | Promise<KvCache>
  /** Names of the artefacts in the store. */
  artefacts(): Promise<readonly string[]>
  /** Changes stored bytes of an artefact, or truncates it. */
  damage(artefactId: string, how: Damage): Promise<void>
  /** Deletes the state that the connectors share, apart from the artefacts. */
  loseState(): void
  close(): Promise<void>
}

/** Where connectors rightly differ. */
export interface KvTraits {
  /** Who loads stored KV. With an engine that loads while it computes (LMCache), no turn has to wait. */
  readonly loadedBy: 'gateway' | 'engine'
  /** Whose KV a session can use. Chunks named by their content can be shared; a slot's file is one conversation. */
  readonly sharing: 'session' | 'tenant'
  /** Damage that is noticed. A store without checksums (LMCache) notices only what is too short. */
  readonly damage: readonly [Damage, ...Damage[]]
  /** Whether a sweep finds KV that nobody remembers. LMCache lists no chunks. */
  readonly sweeps: boolean
  /** Whether the KV of a turn is stored that another pod served than the chosen one. */
  readonly storesElsewhere: boolean
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

/** The first turn of a session on a pod, unless `rest` says otherwise. */
export const turnOf = (
  { key, tenant }: TestSession,
  pod: Pick<TestPod, 'address'>,
  rest: Partial<SessionTurn> = {},
): SessionTurn => {
  turns += 1
  return {
    session: key,
    tenant,
    model: 'tiny',
    turnId: `turn-${turns}`,
    pod: pod.address,
    stored: undefined,
    restarted: false,
    createdAtMs: 0,
    kvStatus: undefined,
    ...rest,
  }
}

let prompts = 0

const [firstLetter, letters] = [0x21, 90]

/** About 400 tokens of which not even the first character is that of the 89 prompts before. */
export const newPrompt = (): string => {
  prompts += 1
  return `${String.fromCharCode(firstLetter + (prompts % letters))} ${prompts} is where this conversation begins. ${'It goes on about caches. '.repeat(16)}`
}

/** Text that adds a little to a prompt. */
export const more = ' And one more question.'

export const anySignal = (): AbortSignal => AbortSignal.timeout(20_000)

/** A connector as the gateway calls it. */
export const inGateway = (connector: KvConnector, log: KvLog = silent): KvCache =>
  createKvCache(connector, { name: 'tested', pool: 'tests', seal: createClaimSeal('secret of the tests'), log })

const silent: KvLog = { debug: () => {}, info: () => {}, warn: () => {} }

/** Finishes a turn as its gateway does. */
export const finishTurn = (
  cache: KvCache,
  turn: KvTurn,
  end: {
    readonly claim: string | undefined
    /** Default: the response has none. */
    readonly usage?: TestUsage
    /** Default: announcements succeed. */
    readonly announce?: EndedTurn['announce']
  },
): Promise<FinishOutcome> => {
  const { claim = '', usage, announce = async () => {} } = end
  const totalTokens = usage && usage.promptTokens + usage.outputTokens
  const tokens = { totalTokens, promptTokens: usage?.promptTokens }
  return cache.finish({ createdAtMs: 0, ...turn, ...tokens, claim, announce, signal: anySignal() })
}

export const releaseTurn = (cache: KvCache, turn: KvTurn, { claim = '' }: PreparedTurn): Promise<void> =>
  cache.release({ ...turn, claim, signal: anySignal() })

export const removeSession = (cache: KvCache, { key }: TestSession, stored?: KvArtefact): Promise<RemoveOutcome> =>
  cache.remove({ kind: 'session', session: key, payload: stored?.payload }, anySignal())

export const removeArtefact = (
  cache: KvCache,
  { key }: TestSession,
  { payload }: Pick<KvArtefact, 'payload'>,
): Promise<RemoveOutcome> => cache.remove({ kind: 'artefact', session: key, payload }, anySignal())

/** Sweeps while the sessions know some artefacts. Default: all that they are asked about. */
export const sweep = (cache: KvCache, known?: readonly string[]): Promise<void> => {
  const artefacts: KnownArtefacts = {
    known: async (ids) => new Set(known === undefined ? ids : ids.filter((id) => known.includes(id))),
    forget: async () => {},
  }
  return cache.sweep(artefacts, anySignal())
}

/** One turn from its preparation to its end. */
export interface ServedTurn {
  readonly prepared: PreparedTurn
  readonly usage: TestUsage
  readonly finished: FinishOutcome
  /** The KV that the session has stored after the turn. */
  readonly stored: KvArtefact | undefined
}

export const serveTurn = async (
  cache: KvCache,
  request: {
    readonly session: TestSession
    readonly pod: TestPod
    readonly prompt: string
    readonly stored?: KvArtefact | undefined
  },
): Promise<ServedTurn> => {
  const { session, pod, prompt, stored } = request
  const turn = turnOf(session, pod, { stored })
  const prepared = await cache.prepare(turn, { signal: anySignal() })
  const usage = await pod.run({ prompt, sessionId: session.id, fields: prepared.fields })
  const finished = await finishTurn(cache, turn, { claim: prepared.claim, usage })
  return { prepared, usage, finished, stored: storedBy(finished) ?? stored }
}

export const storedBy = (finished: FinishOutcome): KvArtefact | undefined =>
  finished.kind === 'stored' ? finished : undefined

/** What the connector wrote of an artefact: without the tag that its host put before it. */
export const payloadOf = ({ payload }: KvArtefact): string => payload.slice(payload.indexOf(' ') + 1)

/** The artefact, as if the connector had written something else of it. */
export const withPayload = (stored: KvArtefact, payload: string): KvArtefact => ({
  ...stored,
  payload: stored.payload.replace(payloadOf(stored), () => payload),
})
