import { describe, expect, jest, test } from '@jest/globals'
import { createClaimSeal } from '../../../src/kvcache/claim-seal.ts'
import { createKvCache, type KvCache, type SessionTurn } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact, KvConnector, Prepared } from '../../../src/kvcache/kv-connector.ts'
import { newSession } from '../../contract/kvcache/kv-test-bed.ts'

const session = newSession()
const kvTurn = { session: session.key, tenant: session.tenant, model: 'tiny', turnId: 'turn-1', pod: '10.0.0.1:8000' }
const never = new AbortController().signal

const starting = (stored?: KvArtefact): SessionTurn => ({
  ...kvTurn,
  stored,
  restarted: false,
  createdAtMs: undefined,
  kvStatus: undefined,
})

const artefact: KvArtefact = { artefactId: 'a1', payload: 'what it wrote', tokens: 100, bytes: 1000 }

/** A connector that stores one artefact, and what its methods received. */
const recorder = (part: Partial<KvConnector> = {}) => {
  const received: unknown[] = []
  const connector: KvConnector = {
    prepare: async ({ stored }) => {
      received.push(stored?.payload)
      return { presence: { kind: 'miss', reason: 'nothing_stored' }, fields: { slot: 1 }, claim: { slot: 1 } }
    },
    isolation: () => ({ slot: -1 }),
    finish: async ({ claim, announce }) => {
      received.push(claim)
      await announce(artefact)
      return { kind: 'stored', ...artefact }
    },
    release: async ({ claim }) => {
      received.push(claim)
    },
    remove: async (removal) => {
      received.push(removal.payload)
      return { kind: 'removed' }
    },
    ...part,
  }
  return { connector, received }
}

const cacheOf = (connector: KvConnector, { name = 'recorder', pool = 'default', secret = 'secret' } = {}): KvCache =>
  createKvCache(connector, {
    name,
    pool,
    seal: createClaimSeal(secret),
    log: { debug: () => {}, info: () => {}, warn: () => {} },
  })

const finishing = (claim: string | undefined) => ({
  ...kvTurn,
  createdAtMs: 0,
  claim: claim ?? '',
  totalTokens: 100,
  promptTokens: 90,
  announce: jest.fn(async (_artefact: Pick<KvArtefact, 'artefactId' | 'payload'>) => {}),
  signal: never,
})

/** Prepares and finishes a turn; the payload under which the session keeps its KV. */
const storedPayload = async (cache: KvCache): Promise<string> => {
  const { claim } = await cache.prepare(starting(), { signal: never })
  const outcome = await cache.finish(finishing(claim))
  return outcome.kind === 'stored' ? outcome.payload : ''
}

describe('a claim', () => {
  test('reaches the connector of another process as it was made, and Envoy sealed', async () => {
    const { connector, received } = recorder()
    const { claim } = await cacheOf(connector).prepare(starting(), { signal: never })
    expect(claim).not.toContain('slot')
    await cacheOf(connector).release({ ...kvTurn, claim: claim ?? '', signal: never })
    expect(received).toEqual([undefined, { slot: 1 }])
  })

  test('of another deployment does not reach the connector', async () => {
    const { connector, received } = recorder()
    const { claim } = await cacheOf(connector, { secret: 'another' }).prepare(starting(), { signal: never })
    const turn = finishing(claim)
    await expect(cacheOf(connector).finish(turn)).resolves.toEqual({ kind: 'none', reason: 'not_attached' })
    await cacheOf(connector).release(turn)
    expect(received).toEqual([undefined])
  })
})

describe('a connector that fails', () => {
  const cycle: unknown[] = []
  cycle.push(cycle)
  test.each<{ name: string; prepared: unknown }>([
    { name: 'nothing', prepared: undefined },
    { name: 'no presence', prepared: { fields: {} } },
    { name: 'no fields', prepared: { presence: { kind: 'miss', reason: 'nothing_stored' } } },
    { name: 'fields that are no JSON', prepared: { presence: { kind: 'miss' }, fields: { id: 1n } } },
    { name: 'a claim that is no JSON', prepared: { presence: { kind: 'miss' }, fields: {}, claim: cycle } },
  ])('to prepare, and returns $name, is a failed load', async ({ prepared }) => {
    const { connector } = recorder({ prepare: async () => prepared as Prepared })
    const turn = await cacheOf(connector).prepare(starting(), { signal: never })
    expect(turn).toMatchObject({ presence: { kind: 'miss', reason: 'load_failed' }, fields: { slot: -1 } })
  })

  test.each([
    { name: 'in time is a failed load', isStored: true, signal: never, reason: 'load_failed' },
    {
      name: 'after the time limit is a late load',
      isStored: true,
      signal: AbortSignal.abort(),
      reason: 'load_timeout',
    },
    {
      name: 'after the time limit, where nothing is stored, is no load',
      isStored: false,
      signal: AbortSignal.abort(),
      reason: 'nothing_stored',
    },
  ])('$name, and the turn meets no KV', async ({ isStored, signal, reason }) => {
    const cause = new Error('broken')
    const stored = { ...artefact, payload: await storedPayload(cacheOf(recorder().connector)) }
    const { connector } = recorder({ prepare: () => Promise.reject(cause) })
    const prepared = await cacheOf(connector).prepare(starting(isStored ? stored : undefined), { signal })
    expect(prepared).toMatchObject({ presence: { kind: 'miss', reason, cause }, fields: { slot: -1 } })
    const finished = await cacheOf(connector).finish(finishing(prepared.claim))
    expect(finished).toEqual({ kind: 'none', reason: 'not_attached' })
  })

  test('at the end of a turn stores nothing', async () => {
    const cause = new Error('broken')
    const { connector } = recorder({ finish: () => Promise.reject(cause), release: () => Promise.reject(cause) })
    const { claim } = await cacheOf(connector).prepare(starting(), { signal: never })
    const turn = finishing(claim)
    await expect(cacheOf(connector).finish(turn)).resolves.toEqual({ kind: 'none', reason: 'offload_failed', cause })
    await expect(cacheOf(connector).release(turn)).resolves.toBeUndefined()
  })
})

describe('stored KV', () => {
  test('comes back to the connector and pool that stored it', async () => {
    const { connector, received } = recorder()
    const payload = await storedPayload(cacheOf(connector))
    await cacheOf(connector).prepare(starting({ ...artefact, payload }), { signal: never })
    expect(received.at(-1)).toBe(artefact.payload)
  })

  test('is announced under the payload with which it is removed', async () => {
    const { connector, received } = recorder()
    const cache = cacheOf(connector)
    const { claim } = await cache.prepare(starting(), { signal: never })
    const turn = finishing(claim)
    await cache.finish(turn)
    expect(turn.announce).toHaveBeenCalledWith({ artefactId: 'a1', payload: await storedPayload(cache) })
    const removal = { kind: 'artefact', session: session.key, payload: await storedPayload(cache) } as const
    await expect(cache.remove(removal, never)).resolves.toEqual({ kind: 'removed' })
    expect(received.at(-1)).toBe(artefact.payload)
  })

  test.each([
    { name: 'another connector', other: { name: 'other' } },
    { name: 'another pool', other: { pool: 'other' } },
  ])('of $name is a miss that keeps it, and is not removed', async ({ other }) => {
    const payload = await storedPayload(cacheOf(recorder().connector, other))
    const { connector, received } = recorder()
    const { presence } = await cacheOf(connector).prepare(starting({ ...artefact, payload }), { signal: never })
    expect(presence).toEqual({ kind: 'miss', reason: 'kv_incompatible' })
    for (const kind of ['artefact', 'session'] as const) {
      const outcome = await cacheOf(connector).remove({ kind, session: session.key, payload }, never)
      expect(outcome).toEqual({ kind: 'foreign' })
    }
    // The session's KV in pods is removed all the same.
    expect(received).toEqual([undefined, undefined])
  })
})

test('a connector of one method stores nothing, and has nothing to remove', async () => {
  const cache = cacheOf({
    prepare: async () => ({ presence: { kind: 'miss', reason: 'no_connector' }, fields: {} }),
  })
  await expect(cache.prepare(starting(), { signal: never })).resolves.toMatchObject({ claim: undefined })
  expect(cache.isolation(session.tenant)).toEqual({})
  const removal = { kind: 'session', session: session.key, payload: undefined } as const
  await expect(cache.remove(removal, never)).resolves.toEqual({ kind: 'removed' })
  await cache.sweep({ known: async () => new Set(), forget: async () => {} }, never)
  await cache.close()
})
