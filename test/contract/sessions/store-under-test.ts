import type { KvLimit } from '../../../src/sessions/limits.ts'
import type { Removal, RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionDirectory } from '../../../src/sessions/session-directory.ts'
import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import type {
  BeginNamedTurn,
  BeginTurn,
  CompleteTurn,
  NewSession,
  SessionStore,
} from '../../../src/sessions/session-store.ts'

/** An empty store whose time the suite moves. */
export interface StoreUnderTest {
  readonly store: SessionStore & RemovalQueue & SessionDirectory
  /** The store's clock. */
  nowMs(): Promise<number>
  /** Moves all times in the store. */
  advance(milliseconds: number): Promise<void>
}

/** Options of every adapter under test. */
export const testTombstoneSeconds = 86_400
export const testSupersededGraceMs = 5000
/** Room for four artefacts of `storeKv`, and for three below the threshold. */
export const testKvLimit: KvLimit = { maxBytes: 500_000_000, threshold: 0.85 }
export const testOptions = {
  tombstoneSeconds: testTombstoneSeconds,
  supersededGraceMs: testSupersededGraceMs,
  kvLimit: testKvLimit,
}

export const seconds = (count: number): number => count * 1000
export const hours = (count: number): number => count * 3_600_000

/** A key of the real length, distinguished by its first characters. */
export const sessionKey = (name: string): SessionKey => name.padEnd(43, '-') as SessionKey
export const tenantKey = (name: string): TenantKey => name.padEnd(43, '_') as TenantKey

export const alice = tenantKey('alice')
export const mallory = tenantKey('mallory')
export const session = sessionKey('session')
export const owned = { key: session, tenant: alice } as const

const defaults = {
  key: session,
  tenant: alice,
  // The length that AES-GCM and base64url give to an id.
  sealedId: 'sealed-id-'.padEnd(86, 'x'),
  model: 'llama-3.1-8b',
  ttlSeconds: 3600,
  pod: '10.0.0.1:8000',
  turnId: 'turn-1',
  leaseMs: 60_000,
  retryOf: undefined,
} satisfies NewSession

export const newSession = (change: Partial<NewSession> = {}): NewSession => ({ ...defaults, ...change })

export const completed = (turnId: string, change: Partial<CompleteTurn> = {}): CompleteTurn => ({
  ...owned,
  turnId,
  pod: '10.0.0.2:8000',
  usage: { prompt: 1000, output: 100, cached: 900 },
  expiry: { kind: 'keep' },
  ...change,
})

export const payloadOf = (artefactId: string): string => `{"file":"${artefactId}"}`

export const storedKv = (artefactId: string, turn = 1): StoredKv => ({
  artefactId,
  payload: payloadOf(artefactId),
  tokens: 1100,
  bytes: 123_456_789,
  turn,
})

/** A store may find the session of an artefact whose name begins like the session's key. */
export const artefactNames = [
  { name: 'of any name', named: (name: string): string => name },
  { name: 'named after their session', named: (name: string): string => `${session.slice(0, 22)}${name}` },
] as const

type Owner = Partial<typeof owned>

/** Calls with defaults: {@link session} of {@link alice} as it lives, turn `turn-2`, leases and grace of a minute. */
export const callsOn = (under: () => StoreUnderTest) => {
  const store = () => under().store
  const create = (change: Partial<NewSession> = {}) => store().create(newSession(change))
  const complete = (turnId = 'turn-2', change: Partial<CompleteTurn> = {}) =>
    store().complete(completed(turnId, change))
  const announce = (artefactId: string, { key = session, graceMs = 60_000, payload = payloadOf(artefactId) } = {}) =>
    store().announce({ artefactId, session: key, payload, graceMs })
  const commit = async (artefactId: string, turn = 1, { key = session, createdAtMs, ...change }: KvChange = {}) => {
    const life = createdAtMs ?? (await store().get({ ...owned, key }))?.createdAtMs ?? 0
    return store().commitKv({ key, createdAtMs: life, kv: { ...storedKv(artefactId, turn), ...change } })
  }
  const claim = (leaseMs = 60_000, limit = 1000) => store().claim({ limit, leaseMs })

  return {
    store,
    create,
    complete,
    announce,
    commit,
    claim,
    nowMs: () => under().nowMs(),
    advance: (milliseconds: number) => under().advance(milliseconds),
    /** Creates a session and completes its first turn. */
    createActive: async (change: Partial<NewSession> = {}): Promise<SessionRecord> => {
      const { key, tenant, turnId } = newSession(change)
      await create(change)
      const outcome = await complete(turnId, { key, tenant })
      if (outcome.kind !== 'completed') throw new Error(`The first turn ended as ${outcome.kind}`)
      return outcome.record
    },
    begin: (turnId = 'turn-2', change: Partial<BeginTurn> = {}) =>
      store().begin({ ...owned, turnId, leaseMs: 60_000, ...change }),
    beginNamed: (turnId = 'turn-2', change: Partial<BeginNamedTurn> = {}) => {
      const { sealedId, model, ttlSeconds } = defaults
      const named = { sealedId, model, ttlSeconds, marks: ['mark'], maxNamedSessions: 1000 }
      return store().beginNamed({ ...owned, turnId, leaseMs: 60_000, ...named, ...change })
    },
    abandon: (turnId = 'turn-2', key = session) => store().abandon({ key, tenant: alice, turnId }),
    get: (owner: Owner = {}) => store().get({ ...owned, ...owner }),
    remove: (owner: Owner = {}) => store().remove({ ...owned, ...owner }),
    setTtl: (ttlSeconds: number, owner: Owner = {}) => store().setTtl({ ...owned, ...owner, ttlSeconds }),
    setKvStatus: (status: string) => store().setKvStatus({ key: session, status }),
    list: (tenant = alice) => store().list({ tenant, limit: 10, after: undefined }),
    /** Resolves to how many sessions the sweep ended. */
    sweep: async (limit = 10): Promise<number> => (await store().expireDue(limit)).ended,
    counts: () => store().counts(),
    /** Announces and commits, as an offload does. */
    storeKv: async (artefactId: string, turn = 1, change: KvChange = {}): Promise<boolean> => {
      await announce(artefactId, change.key === undefined ? {} : { key: change.key })
      return await commit(artefactId, turn, change)
    },
    /** Claims all that is due: id and payload, in any order. */
    claimAll: async (): Promise<Readonly<Record<string, string | undefined>>> =>
      Object.fromEntries((await claim()).map(({ id, payload }) => [id, payload])),
    /** Claims the one removal that is due. */
    claimOne: async (leaseMs = 30_000): Promise<Removal> => {
      const [removal, ...others] = await claim(leaseMs)
      if (removal === undefined || others.length > 0) throw new Error('Not one removal is due')
      return removal
    },
    /** Claims and acknowledges all that is due. Resolves to the ids. */
    drain: async (): Promise<readonly string[]> => {
      const claimed = await claim()
      await store().ack(claimed)
      return claimed.map(({ id }) => id).sort()
    },
  }
}

type KvChange = Partial<StoredKv & Pick<SessionRecord, 'key' | 'createdAtMs'>>

export type StoreCalls = ReturnType<typeof callsOn>
