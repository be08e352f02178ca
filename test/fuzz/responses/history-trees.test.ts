import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { alice, callsOn } from '../../contract/responses/history-calls.ts'
import {
  clusterHistory,
  type HistoryStoreUnderTest,
  memoryHistory,
  redisHistory,
} from '../../contract/responses/history-under-test.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { HistoryModel, textOf } from './history-model.ts'

/** Which of those that there are, chosen when the step is taken. */
const pick = fc.nat({ max: 30 })
const ttlSeconds = fc.constantFrom(10, 60, 300)

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('begin' as const), ttlSeconds }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('follow' as const), of: pick, ttlSeconds }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('race' as const), of: pick, ttlSeconds }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), of: pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), seconds: fc.constantFrom(5, 20, 100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('new-conversation' as const), ttlSeconds }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('converse' as const), of: pick, ttlSeconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), of: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('add-item' as const), of: pick, ttlSeconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-conversation' as const), of: pick }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Longer than any step: a lock ends by release, or with all else. */
const lockMs = 10_000_000

const exercise = (under: HistoryStoreUnderTest) => {
  const model = new HistoryModel()
  const { history, conversations, responses, chain } = callsOn(under.store)
  let count = 0
  const conversationIds: string[] = []
  const newId = (kind: string): string => {
    count += 1
    return `${kind}-${count}`
  }
  /** Of those that there ever were, most of them of the last ones. */
  const responseId = (which: number): string => `resp-${Math.max(1, count - which)}`
  const conversationId = (which: number): string =>
    conversationIds[which % Math.max(1, conversationIds.length)] ?? 'none'
  const content = (text: string) => JSON.stringify({ type: 'message', role: 'user', content: text })
  const finished = (id: string, ttl: number) => ({
    tenant: alice,
    model: 'm',
    responseId: id,
    inputItems: [content(`q ${id}`)],
    response: JSON.stringify({ id, model: 'm', output: [JSON.parse(content(`a ${id}`))] }),
    ttlSeconds: ttl,
  })

  const follow = async (before: string, ttl: number): Promise<void> => {
    const id = newId('resp')
    const texts = model.texts(before)
    const outcome = await history.append({ ...finished(id, ttl), after: { kind: 'response', id: before } })
    expect(outcome.kind).toBe(texts === undefined ? 'gone' : 'stored')
    if (texts !== undefined) model.addResponse(id, [...texts, `q ${id}`, `a ${id}`], ttl)
  }

  const hold = (id: string, turnId: string) =>
    history.open({ tenant: alice, continued: { kind: 'conversation', id, turnId, lockMs } })

  const begin = async (ttl: number): Promise<void> => {
    const id = newId('resp')
    await history.append({ ...finished(id, ttl), after: { kind: 'first', root: history.newRoot() } })
    model.addResponse(id, [`q ${id}`, `a ${id}`], ttl)
  }

  const remove = async (id: string): Promise<void> => {
    expect((await responses.remove({ tenant: alice, id })).kind).toBe(model.remove(id) ? 'deleted' : 'unknown')
  }

  const removeConversation = async (id: string): Promise<void> => {
    expect((await conversations.remove({ tenant: alice, id })).kind).toBe(model.remove(id) ? 'deleted' : 'unknown')
  }

  const newConversation = async (ttl: number): Promise<void> => {
    const created = await conversations.create({ tenant: alice, items: [], metadata: {}, ttlSeconds: ttl })
    if (created.kind !== 'created') throw new Error('There is no room')
    conversationIds.push(created.conversation.id)
    model.addConversation(created.conversation.id, ttl)
  }

  const expectedOf = (conversation: string): string => {
    if (model.conversation(conversation) === undefined) return 'unknown'
    return model.holder(conversation) === undefined ? 'found' : 'locked'
  }

  const converse = async (conversation: string, ttl: number): Promise<void> => {
    const [id, turnId] = [newId('resp'), newId('turn')]
    const opened = await hold(conversation, turnId)
    expect(opened.kind).toBe(expectedOf(conversation))
    const after = { kind: 'conversation', id: conversation, turnId } as const
    const outcome = await history.append({ ...finished(id, ttl), after })
    expect(outcome.kind).toBe(opened.kind === 'found' ? 'stored' : 'gone')
    if (outcome.kind !== 'stored') return
    model.addItems(conversation, [`q ${id}`, `a ${id}`], ttl)
    model.addResponse(id, model.conversation(conversation) ?? [], ttl)
  }

  /** A gateway ends in the middle of a turn: its lock stays. */
  const kill = async (conversation: string): Promise<void> => {
    const turnId = newId('turn')
    const opened = await hold(conversation, turnId)
    expect(opened.kind).toBe(expectedOf(conversation))
    if (opened.kind === 'found') model.hold(conversation, turnId)
  }

  const addItem = async (id: string, ttl: number): Promise<void> => {
    const text = newId('item')
    const expected = expectedOf(id)
    const added = await conversations.addItems({ tenant: alice, id, items: [content(text)], ttlSeconds: ttl })
    expect(added.kind).toBe(expected === 'found' ? 'added' : expected)
    if (added.kind === 'added') model.addItems(id, [text], ttl)
  }

  const advance = async (seconds: number): Promise<void> => {
    await under.advance(seconds * 1000)
    model.advance(seconds * 1000)
  }

  const take = (taken: Step): Promise<unknown> => {
    switch (taken.do) {
      case 'begin':
        return begin(taken.ttlSeconds)
      case 'follow':
        return follow(responseId(taken.of), taken.ttlSeconds)
      case 'race':
        return Promise.all([1, 2].map(() => follow(responseId(taken.of), taken.ttlSeconds)))
      case 'delete':
        return remove(responseId(taken.of))
      case 'advance':
        return advance(taken.seconds)
      case 'new-conversation':
        return newConversation(taken.ttlSeconds)
      case 'converse':
        return converse(conversationId(taken.of), taken.ttlSeconds)
      case 'kill':
        return kill(conversationId(taken.of))
      case 'add-item':
        return addItem(conversationId(taken.of), taken.ttlSeconds)
      case 'delete-conversation':
        return removeConversation(conversationId(taken.of))
    }
  }

  const check = async (): Promise<void> => {
    for (let number = 1; number <= count; number += 1) {
      const id = `resp-${number}`
      const expected = model.texts(id)
      if (expected === undefined) expect(await history.get({ tenant: alice, id })).toBeUndefined()
      else expect((await chain(id)).items.map(textOf)).toEqual(expected)
    }
    for (const id of model.conversationIds())
      expect((await conversations.items({ tenant: alice, id }))?.map(textOf)).toEqual(model.conversation(id))
  }

  return { model, take, check }
}

const steps = fc.array(step, { minLength: 5, maxLength: 40 })

describe('trees of responses are as a model that keeps a copy for each id', () => {
  const redis = useTestRedis()
  const cluster = useTestRedisCluster({ replicas: 0 })

  test('in memory', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const { take, check } = exercise(memoryHistory())
        for (const each of taken) await take(each)
        await check()
      }),
      { numRuns: 200 },
    )
  })

  test('in Redis, where no more nodes are left than turns that something leads to', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const under = await redisHistory(redis())
        const { model, take, check } = exercise(under)
        for (const each of taken) await take(each)
        await check()
        const nodes = (await redis().raw.keys(`${under.prefix}*:n*`)).length
        // A turn has a question, and an item of a conversation is a turn of its own.
        const turns = [...model.alive()].filter((text) => !text.startsWith('a ')).length
        expect(nodes).toBe(turns)
        const total = Number((await redis().raw.get((await redis().raw.keys(`${under.prefix}*:t`))[0] ?? '')) ?? 0)
        const keys = await redis().raw.keys(`${under.prefix}*:[hn]*`)
        const bytes = await Promise.all(keys.map((key) => redis().raw.hget(key, 'b')))
        const due = bytes.reduce((sum, text) => sum + Number(text), 0)
        expect(total).toBeGreaterThanOrEqual(due)
      }),
      { numRuns: 40 },
    )
  })

  test('in a Redis Cluster', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const { take, check } = exercise(await clusterHistory(cluster()))
        for (const each of taken) await take(each)
        await check()
      }),
      { numRuns: 10 },
    )
  })
})
