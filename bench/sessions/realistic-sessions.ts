import { hash } from 'node:crypto'
import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionKey, TenantKey } from '../../src/sessions/session-record.ts'
import type { NewSession, SessionStore } from '../../src/sessions/session-store.ts'

// Sessions as a gateway writes them: of 1,000 tenants, after one turn, with stored KV. Each follows from its number.

export type BenchedStore = SessionStore & RemovalQueue

export const leaseMs = 660_000

const tenants = 1000
const ttlSeconds = 86_400
const graceMs = 60_000
const pod = '10.42.17.23:8000'

/** Without an object for each digest: they would prolong every collection that lookups wait for. */
const digest = (text: string): string => hash('sha256', text, 'base64url')

export const tenantOf = (number: number): TenantKey => digest(`tenant ${number % tenants}`) as TenantKey

export const keyOf = (series: string, number: number): SessionKey => digest(`${series} ${number}`) as SessionKey

export const newSession = (series: string, number: number): NewSession => {
  const key = keyOf(series, number)
  const tenant = tenantOf(number)
  return {
    key,
    tenant,
    // An id sealed with AES-256-GCM: nonce, 36 characters and tag are 86 characters of base64url.
    sealedId: `${key}${tenant}`.slice(0, 86),
    model: 'meta-llama/Llama-3.1-8B-Instruct',
    ttlSeconds,
    pod,
    turnId: key.slice(0, 21),
    leaseMs,
    retryOf: undefined,
  }
}

/** Writes a session and ends its first turn. */
export const writeSession = async (store: BenchedStore, session: NewSession): Promise<void> => {
  const { key, tenant, turnId } = session
  const usage = { prompt: 2944, output: 128, cached: 0 }
  await store.create(session)
  await store.complete({ key, tenant, turnId, pod, usage, expiry: { kind: 'keep' } })
}

/** Gives a session that was written its KV, without a payload, which is the connector's. */
export const storeKv = async (store: BenchedStore, { key, tenant }: NewSession): Promise<void> => {
  // As the connector of llama-server names it: after the session, with 28 digits for the turn and the engine.
  const artefactId = `${key.slice(0, 22)}${Buffer.from(key).toString('hex').slice(0, 28)}`
  const kv = { artefactId, payload: '', tokens: 3072, bytes: 402_653_184, turn: 1 }
  await store.announce({ artefactId, session: key, payload: kv.payload, graceMs })
  const { createdAtMs = 0 } = (await store.get({ key, tenant })) ?? {}
  if (!(await store.commitKv({ key, tenant, createdAtMs, kv }))) throw new Error('a session did not take its KV')
}
