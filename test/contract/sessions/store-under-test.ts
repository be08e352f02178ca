import type { KvLimit } from '../../../src/sessions/limits.ts'
import type { Removal, RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionKey, SessionRecord, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import type { CompleteTurn, NewSession, SessionStore } from '../../../src/sessions/session-store.ts'

/** A fresh, empty store whose time the suite moves. */
export interface StoreUnderTest {
  readonly store: SessionStore & RemovalQueue
  /** The store's clock. */
  nowMs(): Promise<number>
  /** Lets that much time pass for everything in the store. */
  advance(milliseconds: number): Promise<void>
}

/** What every adapter under test is made with. */
export const testTombstoneSeconds = 86_400
export const testSupersededGraceMs = 5000
/** Room for four of the artefacts that `storeKv` stores, and for three below the threshold. */
export const testKvLimit: KvLimit = { maxBytes: 500_000_000, threshold: 0.85 }

export const seconds = (count: number): number => count * 1000
export const hours = (count: number): number => count * 3_600_000

/** A key of the real length, told apart by its first characters. */
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

export const aTurn = (turnId: string, leaseMs = 60_000) => ({ ...owned, turnId, leaseMs })

export const completed = (turnId: string, change: Partial<CompleteTurn> = {}): CompleteTurn => ({
  ...owned,
  turnId,
  pod: '10.0.0.2:8000',
  usage: { prompt: 1000, output: 100, cached: 900 },
  expiry: { kind: 'keep' },
  ...change,
})

export const storedKv = (artefactId: string, turn: number): StoredKv => ({
  artefactId,
  payload: `{"file":"${artefactId}"}`,
  tokens: 1100,
  bytes: 123_456_789,
  turn,
})

/** A session whose first turn has completed. */
export const createActive = async (
  { store }: StoreUnderTest,
  change: Partial<NewSession> = {},
): Promise<SessionRecord> => {
  const wanted = newSession(change)
  await store.create(wanted)
  const outcome = await store.complete({ ...completed(wanted.turnId), key: wanted.key, tenant: wanted.tenant })
  if (outcome.kind !== 'completed') throw new Error(`The first turn ended as ${outcome.kind}`)
  return outcome.record
}

/** Where an artefact's name begins as its session's does, a store may find the session by it. */
export const artefactNames = [
  { name: 'of any name', named: (name: string): string => name },
  { name: 'named after their session', named: (name: string): string => `${session.slice(0, 22)}${name}` },
] as const

export const announceFor = async (
  { store }: StoreUnderTest,
  artefactId: string,
  { key = session, graceMs = 60_000 }: { readonly key?: SessionKey; readonly graceMs?: number } = {},
): Promise<void> => {
  await store.announce({ artefactId, session: key, payload: storedKv(artefactId, 0).payload, graceMs })
}

/** Announces and commits, as an offload does. */
export const storeKv = async (
  under: StoreUnderTest,
  artefactId: string,
  turn: number,
  key: SessionKey = session,
  bytes = storedKv(artefactId, turn).bytes,
): Promise<boolean> => {
  await announceFor(under, artefactId, { key })
  return await under.store.commitKv({ key, kv: { ...storedKv(artefactId, turn), bytes } })
}

/** What is due now, without settling any of it: id and payload, in any order. */
export const claimAll = async ({ store }: StoreUnderTest): Promise<Readonly<Record<string, string | undefined>>> => {
  const claimed = await store.claim({ limit: 1000, leaseMs: 60_000 })
  return Object.fromEntries(claimed.map(({ id, payload }) => [id, payload]))
}

/** Claims the one removal that is due. */
export const claimOne = async ({ store }: StoreUnderTest, leaseMs = 30_000): Promise<Removal> => {
  const [removal, ...others] = await store.claim({ limit: 10, leaseMs })
  if (removal === undefined || others.length > 0) throw new Error('Not one removal is due')
  return removal
}

/** Claims and settles whatever is due. */
export const drain = async ({ store }: StoreUnderTest): Promise<readonly string[]> => {
  const claimed = await store.claim({ limit: 1000, leaseMs: 60_000 })
  await store.ack(claimed)
  return claimed.map(({ id }) => id).sort()
}
