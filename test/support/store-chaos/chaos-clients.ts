import { setTimeout as delay } from 'node:timers/promises'
import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionRecord } from '../../../src/sessions/session-record.ts'
import type { SessionStore } from '../../../src/sessions/session-store.ts'
import { tenantKey } from '../../contract/sessions/store-under-test.ts'
import type { ChaosLedger } from './chaos-ledger.ts'
import { ChaosSession } from './chaos-session.ts'

export type ChaosStore = SessionStore & RemovalQueue

export interface ChaosParts {
  /** Of two gateways. */
  readonly stores: readonly ChaosStore[]
  readonly ledger: ChaosLedger
  /** 0 to 1, from a seed. */
  readonly random: () => number
  readonly partitionOf: (session: ChaosSession) => number | undefined
  readonly until: AbortSignal
}

const tenants = [tenantKey('alice'), tenantKey('mallory')] as const
const [pauseMs, retryPauseMs, sweepPauseMs] = [4, 50, 100]
export const leaseMs = 3_000
export const graceMs = 1_500
const tries = 3
/** Sessions that a client keeps at a time. */
const kept = 12

const pick = <T>(random: () => number, items: readonly T[]): T => {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

/** A client: creates sessions, takes turns of them, stores their KV, patches, reads and deletes them. */
export const runClient = async (client: number, parts: ChaosParts): Promise<void> => {
  const { ledger, random, stores, partitionOf } = parts
  const own: ChaosSession[] = []
  let serial = 0
  const ask = <T>(operation: string, session: ChaosSession, call: (store: ChaosStore) => Promise<T>) =>
    ledger.ask(operation, partitionOf(session), () => call(pick(random, stores)))

  const create = async (): Promise<void> => {
    serial += 1
    const ttlSeconds = random() < 0.25 ? 1 : 3_600
    const session = new ChaosSession({ name: `${client}-${serial}`, tenant: pick(random, tenants), ttlSeconds })
    const { key, tenant, model, sealedId } = session
    const wanted = {
      key,
      tenant,
      model,
      sealedId,
      ttlSeconds,
      leaseMs,
      pod: 'pod',
      turnId: 'first',
      retryOf: undefined,
    }
    ledger.sessions.push(session)
    const created = await ask('create', session, (store) => store.create(wanted))
    if (created === undefined) return
    if (created.answer.kind !== 'created') ledger.violations.push(`${model}: created as ${created.answer.kind}`)
    await complete(session, 'first')
    session.isCreated = session.countedTurns > 0
    own.push(session)
  }

  /** As the gateway does: what is not answered is asked again. */
  const complete = async (session: ChaosSession, turnId: string): Promise<void> => {
    const { key, tenant } = session
    const expected = session.expected()
    const usage = { prompt: 100, output: 10, cached: 90 }
    session.askedTurns += 1
    for (let tried = 0; tried < tries; tried += 1) {
      const turn = { key, tenant, turnId, pod: 'pod', usage, expiry: { kind: 'keep' } as const }
      const ended = await ask('complete', session, (store) => store.complete(turn))
      if (ended === undefined) {
        await delay(retryPauseMs)
        continue
      }
      if (ended.answer.kind !== 'completed') return
      if (ended.answer.isCounted) session.countedTurns += 1
      ledger.check(session, ended.answer.record, expected)
      if (random() < 0.5) await storeKv(session, ended.answer.record)
      return
    }
  }

  const storeKv = async (session: ChaosSession, { createdAtMs, turns }: SessionRecord): Promise<void> => {
    const { key, tenant } = session
    const id = `${key.slice(0, 22)}${ledger.artefacts.size}`
    const artefact = { id, session, isAnnounced: false, isSecured: false }
    ledger.artefacts.set(id, artefact)
    const announced = await ask('announce', session, (store) =>
      store.announce({ artefactId: id, session: key, payload: id, graceMs }),
    )
    if (announced === undefined) return
    artefact.isAnnounced = true
    // A gateway may die before it commits.
    if (random() < 0.1) return
    const kv = { artefactId: id, payload: id, tokens: 110, bytes: 1_000, turn: turns }
    await ask('commit', session, (store) => store.commitKv({ key, tenant, createdAtMs, kv }))
  }

  const takeTurn = async (session: ChaosSession): Promise<void> => {
    const { key, tenant } = session
    const expected = session.expected()
    serial += 1
    const turnId = `turn-${serial}`
    const begun = await ask('begin', session, (store) => store.begin({ key, tenant, turnId, leaseMs }))
    if (begun?.answer.kind === 'active') ledger.check(session, begun.answer.record, expected)
    if (begun === undefined || (begun.answer.kind !== 'active' && begun.answer.kind !== 'expired')) return
    const end = random()
    if (end < 0.8) await complete(session, turnId)
    else if (end < 0.95) await ask('abandon', session, (store) => store.abandon({ key, tenant, turnId }))
  }

  const patch = async (session: ChaosSession): Promise<void> => {
    const { key, tenant } = session
    const expected = session.expected()
    serial += 1
    const ttlSeconds = 3_600 + serial
    if (!session.isLasting) return
    session.ttls.push(ttlSeconds)
    const patched = await ask('setTtl', session, (store) => store.setTtl({ key, tenant, ttlSeconds }))
    if (patched !== undefined) ledger.check(session, patched.answer, expected)
  }

  const look = async (session: ChaosSession): Promise<void> => {
    const { key, tenant } = session
    const expected = session.expected()
    const seen = await ask('get', session, (store) => store.get({ key, tenant }))
    if (seen !== undefined) ledger.check(session, seen.answer, expected)
    const other = tenants.find((one) => one !== tenant) ?? tenant
    const stolen = await ask('get', session, (store) => store.get({ key, tenant: other }))
    if (stolen?.answer !== undefined) ledger.violations.push(`${session.model} is shown to another tenant`)
  }

  const list = async (): Promise<void> => {
    const tenant = pick(random, tenants)
    const page = await ledger.ask('list', undefined, () =>
      pick(random, stores).list({ tenant, limit: 50, after: undefined }),
    )
    for (const record of page?.answer.records ?? []) {
      const session = ledger.sessions.find(({ key }) => key === record.key)
      if (record.tenant !== tenant || record.model !== session?.model)
        ledger.violations.push(`the list of a tenant has ${record.model}`)
    }
  }

  const remove = async (session: ChaosSession): Promise<void> => {
    const { key, tenant } = session
    own.splice(own.indexOf(session), 1)
    session.deleted = 'maybe'
    const removed = await ask('remove', session, (store) => store.remove({ key, tenant }))
    if (removed?.answer === true) session.deleted = 'yes'
  }

  while (!parts.until.aborted) {
    const what = random()
    if (own.length < 3 || (what < 0.15 && own.length < kept)) await create()
    else if (what < 0.7) await takeTurn(pick(random, own))
    else if (what < 0.8) await patch(pick(random, own))
    else if (what < 0.9) await look(pick(random, random() < 0.5 ? own : ledger.sessions))
    else if (what < 0.92) await list()
    else await remove(pick(random, own))
    await delay(pauseMs)
  }
}

/** The work of a gateway's reaper, once. Some removals are claimed and not done: their gateway died. */
export const sweepOnce = async (
  store: ChaosStore,
  { ledger, doneShare, random }: Pick<ChaosParts, 'ledger' | 'random'> & { readonly doneShare: number },
): Promise<void> => {
  await ledger.ask('expireDue', undefined, () => store.expireDue(100))
  const removals = await ledger.ask('claim', undefined, () => store.claim({ limit: 100, leaseMs: 1_000 }))
  const done = (removals?.answer ?? []).filter(() => random() < doneShare)
  for (const { payload } of done) if (payload !== undefined) ledger.claimed.add(payload)
  if (done.length > 0) await ledger.ask('ack', undefined, () => store.ack(done))
}

export const runSweeps = async (store: ChaosStore, parts: ChaosParts): Promise<void> => {
  while (!parts.until.aborted) {
    await sweepOnce(store, { ...parts, doneShare: 0.9 })
    await delay(sweepPauseMs)
  }
}
