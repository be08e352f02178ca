import { beforeEach, describe, expect, test } from '@jest/globals'
import { leaseMs } from '../../../src/kvcache/llamacpp-slots/open-claims.ts'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import { type ClaimSlot, lateEndMs, type SlotContent, type SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import { type RedisConnection, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { startTestRedis } from '../../support/test-redis.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

const [alice, bob, carol] = ['alice', 'bob', 'carol'] as SessionKey[] as [SessionKey, SessionKey, SessionKey]
const pod = '10.0.0.1:8080'
const content: SlotContent = { artefactId: 'a1', createdAtMs: 1_700_000_000_000, tokens: 100, mark: 'm1' }
const usual = { pod, leaseMs, artefactId: undefined, mayWait: false }
const idle = (...ids: readonly number[]) => ids.map((id) => ({ id, idle: true }))

const redis = useTestRedis()
let connection: RedisConnection

/** A ledger, and a way to let its time pass. */
interface Timed {
  readonly ledger: SlotLedger
  readonly pass: (ms: number) => Promise<void>
}

const inMemory = async (): Promise<Timed> => {
  let nowMs = 1_000
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms
  }
  return { ledger: createMemorySlotLedger({ now: () => nowMs }), pass }
}

const inRedis = async (): Promise<Timed> => {
  const server = redis()
  connection = await server.connect()
  const key = `${connection.keyPrefix}kv:slots:${pod}`
  /** Redis' clock cannot be set: every record gets older instead. */
  const pass = async (ms: number): Promise<void> => {
    for (const [slot, text] of Object.entries(await server.raw.hgetall(key))) {
      const record = JSON.parse(text)
      await server.raw.hset(key, slot, JSON.stringify({ ...record, until: record.until - ms }))
    }
  }
  return { ledger: createRedisSlotLedger(connection), pass }
}

// The model-based test compares that of a Redis Cluster with that in memory.
describe.each([
  { name: 'memory', make: inMemory },
  { name: 'Redis', make: inRedis },
])('SlotLedger: $name', ({ make }) => {
  let ledger: SlotLedger
  let pass: Timed['pass']
  beforeEach(async () => {
    ;({ ledger, pass } = await make())
  })

  const claim = (session: SessionKey, turnId: string, options: Partial<ClaimSlot> = {}) =>
    ledger.claim({ ...usual, slots: idle(0, 1), session, turnId, ...options })
  const release = (slot: number, turnId: string, left?: SlotContent) =>
    ledger.release({ pod, slot, turnId, content: left })
  const renew = (slot: number, turnId: string, saving = false) =>
    ledger.renew([{ pod, slot, turnId }], { leaseMs, saving })
  const seize = (slot: number, turnId = 'sweep') => ledger.seize({ pod, slot, turnId, leaseMs })
  /** A turn of the session leaves content in the slot. */
  const leave = async (session: SessionKey, slot: number, left = content): Promise<void> => {
    await claim(session, `${session}-before`, { slots: idle(slot) })
    await release(slot, `${session}-before`, left)
  }
  const slotOf = async (session: SessionKey, options: Partial<ClaimSlot> = {}) => {
    const claimed = await claim(session, `${session}-next`, options)
    return claimed.kind === 'claimed' ? claimed.slot : claimed.kind
  }

  describe('claim', () => {
    test('returns what the session left in its slot, once', async () => {
      await leave(alice, 1)
      expect(await claim(alice, 't1')).toEqual({ kind: 'claimed', slot: 1, content })
      await release(1, 't1')
      expect(await claim(alice, 't2')).toEqual({ kind: 'claimed', slot: 1, content: undefined })
    })

    test.each<{ name: string; options: Partial<ClaimSlot>; expected: number }>([
      { name: 'the one with the stored content', options: { artefactId: 'a2' }, expected: 2 },
      { name: 'one of the session', options: {}, expected: 1 },
      { name: 'one without an owner, where the session’s are busy', options: { slots: idle(0, 3) }, expected: 3 },
      { name: 'the least recently claimed one of others', options: { slots: idle(0, 4) }, expected: 4 },
    ])('of several slots takes $name', async ({ options, expected }) => {
      await leave(bob, 4)
      await leave(alice, 1)
      await leave(alice, 2, { ...content, artefactId: 'a2' })
      await leave(bob, 0)
      expect(await slotOf(alice, { slots: idle(0, 1, 2, 3, 4), ...options })).toBe(expected)
    })

    test('a long turn takes the only slot of a pod', async () => {
      expect(await slotOf(alice, { slots: idle(0), isLong: true })).toBe(0)
    })

    test('overlapping turns of a session get slots of their own', async () => {
      const taken = await Promise.all(Array.from({ length: 20 }, (_, index) => claim(alice, `t${index}`)))
      const slots = taken.flatMap((outcome) => (outcome.kind === 'claimed' ? outcome.slot : []))
      expect([slots.length, new Set(slots)]).toEqual([2, new Set([0, 1])])
    })

    test('a turn waits while another turn of its session is being saved', async () => {
      await claim(alice, 't1')
      await renew(0, 't1', true)
      await renew(0, 't1')
      for (const mayWait of [true, false]) expect(await claim(alice, 't2', { mayWait })).toEqual({ kind: 'wait' })
      expect(await slotOf(bob, { mayWait: true })).toBe(1)
      await release(0, 't1', content)
      expect(await claim(alice, 't2', { mayWait: true })).toMatchObject({ kind: 'claimed', slot: 0 })
    })

    test.each([
      { name: 'waits for the end of', mayWait: true, task: 8, expected: { kind: 'wait' } },
      { name: 'that may not wait takes the slot of', mayWait: false, task: 8, expected: { kind: 'claimed', slot: 0 } },
      { name: 'has another slot than', mayWait: true, task: 7, expected: { kind: 'claimed', slot: 1 } },
    ])('a turn $name another one of its session whose slot reports task $task, after 7', async (row) => {
      const slotsAfter = (task: number) => [{ id: 0, idle: true, task }, ...idle(1)]
      await claim(alice, 't1', { slots: slotsAfter(7) })
      const { mayWait } = row
      expect(await claim(alice, 't2', { mayWait, slots: slotsAfter(row.task) })).toMatchObject(row.expected)
      expect(await renew(0, 't1')).toEqual([mayWait])
    })

    test('a turn waits while a sweep holds the last slot', async () => {
      await seize(0, 'sweep')
      expect(await claim(alice, 't1', { mayWait: true, slots: idle(0) })).toEqual({ kind: 'wait' })
      expect(await claim(alice, 't1', { mayWait: false, slots: idle(0) })).toEqual({ kind: 'no-room' })
    })

    test('a turn waits while another turn of its session holds the last slot', async () => {
      await claim(alice, 't1', { slots: idle(0) })
      const outcomes = await Promise.all([
        claim(alice, 't2', { mayWait: true, slots: idle(0) }),
        claim(alice, 't2', { mayWait: false, slots: idle(0) }),
        claim(bob, 'b1', { mayWait: true, slots: idle(0) }),
      ])
      expect(outcomes.map(({ kind }) => kind)).toEqual(['wait', 'no-room', 'no-room'])
      expect(await claim(alice, 't2', { mayWait: true })).toMatchObject({ kind: 'claimed', slot: 1 })
    })
  })

  describe('leases', () => {
    test('a slot whose lease is not renewed is free after 6 seconds, and in use for a minute more', async () => {
      await claim(bob, 'killed', { slots: idle(0) })
      await pass(3_000)
      expect(await slotOf(alice, { slots: idle(0) })).toBe('no-room')
      await pass(3_000)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, inUse: true, user: bob }])
      expect(await slotOf(alice, { slots: idle(0) })).toBe(0)
      await pass(leaseMs + lateEndMs)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, inUse: false, user: alice }])
    })

    test('renewal keeps the slots of several pods, of equal numbers', async () => {
      await claim(bob, 'b1', { slots: idle(0) })
      await claim(bob, 'b2', { pod: '[::1]:9', slots: idle(0) })
      await pass(3_000)
      const turns = [
        { pod, slot: 0, turnId: 'b1' },
        { pod: '[::1]:9', slot: 0, turnId: 'b2' },
        { pod, slot: 1, turnId: 'b1' },
      ]
      expect(await ledger.renew(turns, { leaseMs })).toEqual([true, true, false])
      await pass(3_000)
      expect(await slotOf(alice, { slots: idle(0) })).toBe('no-room')
    })
  })

  describe('release', () => {
    test('without content leaves the slot with its former owner, and unknown content', async () => {
      await leave(bob, 0)
      await claim(alice, 't1', { slots: idle(0) })
      expect(await ledger.list(pod)).toEqual([{ slot: 0, owner: bob, inUse: true, user: alice }])
      await release(0, 't1')
      expect(await ledger.list(pod)).toEqual([{ slot: 0, owner: bob, inUse: false }])
    })

    test('is told once, with its pod, unless the turn does not hold the slot', async () => {
      const told: string[] = []
      ledger.onRelease((at) => told.push(at))
      await claim(alice, 't1', { slots: idle(0) })
      await release(0, 'stranger')
      expect(told).toEqual([])
      await release(0, 't1', content)
      await release(0, 't1', content)
      expect(told).toEqual([pod])
    })

    test('with content makes the session the owner', async () => {
      await leave(bob, 0)
      await leave(alice, 0)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, owner: alice, content, inUse: false }])
      expect(await ledger.list('[::1]:9')).toEqual([])
    })
  })

  describe('seize', () => {
    test('keeps turns out, and returns what is known of the slot', async () => {
      await leave(alice, 0)
      expect(await seize(0)).toEqual({ owner: alice, content })
      expect(await slotOf(alice, { slots: idle(0) })).toBe('no-room')
      await release(0, 'sweep')
      expect(await claim(alice, 't1')).toEqual({ kind: 'claimed', slot: 0, content })
    })

    test('of a slot that was never claimed, released as erased, leaves it without an owner', async () => {
      expect(await seize(0)).toEqual({})
      const erased = { tokens: 0, mark: 'm2' }
      await release(0, 'sweep', erased)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, content: erased, inUse: false }])
      await leave(carol, 0)
      await seize(0)
      await release(0, 'sweep', erased)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, content: erased, inUse: false }])
    })
  })
})

describe('the slot ledger in Redis', () => {
  const session = 'alice' as SessionKey
  const request = { ...usual, session, slots: idle(0) }

  test('is shared by two gateway processes', async () => {
    const shared = await redis().connect()
    const ledgers = [createRedisSlotLedger(shared), createRedisSlotLedger(shared)]
    const taken = await Promise.all(ledgers.map((ledger, index) => ledger.claim({ ...request, turnId: `t${index}` })))
    expect(taken.map(({ kind }) => kind).sort()).toEqual(['claimed', 'no-room'])
  })

  test.each(['{"owner":', '[]', '"text"', '{"owner":"bob"}', '{"until":0,"used":1,"owner":7,"content":"x"}'])(
    'takes the damaged record %s for an unknown slot',
    async (text) => {
      const { ledger } = await inRedis()
      await redis().raw.hset(`${connection.keyPrefix}kv:slots:${pod}`, '0', text)
      expect(await ledger.list(pod)).toEqual([{ slot: 0, inUse: false }])
      expect(await ledger.claim({ ...request, turnId: 't' })).toMatchObject({ kind: 'claimed', slot: 0 })
    },
  )

  test('on a full Redis, refuses to claim, and still ends turns and removes', async () => {
    const full = await startTestRedis()
    try {
      const ledger = createRedisSlotLedger(await full.connect())
      const [held, place] = [
        { ...request, turnId: 't' },
        { pod, slot: 0, turnId: 't' },
      ]
      await ledger.claim(held)
      await full.raw.config('SET', 'maxmemory', '1')
      await expect(ledger.claim({ ...held, slots: idle(1) })).rejects.toBeInstanceOf(RedisUnavailableError)
      expect(await ledger.renew([place], { leaseMs, saving: true })).toEqual([true])
      await ledger.release({ ...place, content })
      expect(await ledger.seize({ ...place, leaseMs })).toEqual({ owner: session, content })
    } finally {
      await full.close()
    }
  })

  test('keeps one key for each pod, and none for ever', async () => {
    const { ledger } = await inRedis()
    await ledger.claim({ ...request, turnId: 't' })
    const keys = await redis().raw.keys(`${connection.keyPrefix}*`)
    expect(keys).toEqual([`${connection.keyPrefix}kv:slots:${pod}`])
    expect(await redis().raw.pttl(keys[0] ?? '')).toBeGreaterThan(0)
  })
})
