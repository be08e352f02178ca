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

/** A key of the real length, distinguished by its first characters. Names of the same last three lie together. */
export const sessionKey = (name: string): SessionKey =>
  `${name.charAt(0)}${name.slice(-3).padEnd(3, '-')}${name}`.padEnd(43, '-') as SessionKey
export const tenantKey = (name: string): TenantKey => name.padEnd(43, '_') as TenantKey

export const alice = tenantKey('alice')
export const mallory = tenantKey('mallory')
export const session = sessionKey('session')
export const owned = { key: session, tenant: alice } as const

/** A digest that lies together with {@link session}. */
export const retryDigest = `d${session.slice(1, 4)}digest`

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

export const payloadOf = (name: string): string => `{"file":"${name}"}`

/** The id of an artefact that tests call `name`. */
export const artefactOf = (name: string, key: SessionKey = session): string => `${key.slice(0, 22)}${name}`

export const storedKv = (name: string, turn = 1, key: SessionKey = session): StoredKv => ({
  artefactId: artefactOf(name, key),
  payload: payloadOf(name),
  tokens: 1100,
  bytes: 123_456_789,
  turn,
})

/** A removal's id, its artefact by the name that tests call it. */
export const shortId = ({ id, session: key }: Pick<Removal, 'id' | 'session'>): string =>
  id.startsWith('a:') ? id.replace(key.slice(0, 22), '') : id

type Owner = Partial<typeof owned>

/** Calls with defaults: {@link session} of {@link alice} as it lives, turn `turn-2`, leases and grace of a minute. */
export const callsOn = (under: () => StoreUnderTest) => {
  const store = () => under().store
  const create = (change: Partial<NewSession> = {}) => store().create(newSession(change))
  const complete = (turnId = 'turn-2', change: Partial<CompleteTurn> = {}) =>
    store().complete(completed(turnId, change))
  const announce = (name: string, { key = session, graceMs = 60_000, payload = payloadOf(name) } = {}) =>
    store().announce({ artefactId: artefactOf(name, key), session: key, payload, graceMs })
  const commit = async (
    name: string,
    turn = 1,
    { key = session, tenant = alice, createdAtMs, ...kv }: KvChange = {},
  ) => {
    const life = createdAtMs ?? (await store().get({ key, tenant }))?.createdAtMs ?? 0
    return store().commitKv({ key, tenant, createdAtMs: life, kv: { ...storedKv(name, turn, key), ...kv } })
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
    storeKv: async (name: string, turn = 1, change: KvChange = {}): Promise<boolean> => {
      await announce(name, change.key === undefined ? {} : { key: change.key })
      return await commit(name, turn, change)
    },
    /** Claims all that is due: {@link shortId} and payload, in any order. */
    claimAll: async (): Promise<Readonly<Record<string, string | undefined>>> =>
      Object.fromEntries((await claim()).map((removal) => [shortId(removal), removal.payload])),
    /** Claims the one removal that is due. */
    claimOne: async (leaseMs = 30_000): Promise<Removal> => {
      const [removal, ...others] = await claim(leaseMs)
      if (removal === undefined || others.length > 0) throw new Error('Not one removal is due')
      return removal
    },
    /** Claims and acknowledges all that is due. Resolves to the short ids. */
    drain: async (): Promise<readonly string[]> => {
      const claimed = await claim()
      await store().ack(claimed)
      return claimed.map(shortId).sort()
    },
  }
}

type KvChange = Partial<StoredKv & Pick<SessionRecord, 'key' | 'tenant' | 'createdAtMs'>>

export type StoreCalls = ReturnType<typeof callsOn>
