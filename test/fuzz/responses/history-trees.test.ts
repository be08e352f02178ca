import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { alice, callsOn } from '../../contract/responses/history-calls.ts'
import { type HistoryStoreUnderTest, memoryHistory, redisHistory } from '../../contract/responses/history-under-test.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { HistoryModel, textOf } from './history-model.ts'

/** Which of those that there ever were, from the last one on. */
const pick = fc.oneof(fc.nat({ max: 2 }), fc.nat({ max: 30 }))
const picked = (ids: readonly string[], which: number): string =>
  ids.at(-1 - (which % Math.max(1, ids.length))) ?? 'none'
const ttlSeconds = fc.constantFrom(10, 60, 300)

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('begin' as const), ttlSeconds }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('follow' as const), of: pick, ttlSeconds }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('race' as const), of: pick, ttlSeconds }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), of: pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), seconds: fc.constantFrom(5, 40) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('new-conversation' as const), ttlSeconds }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('converse' as const), of: pick, ttlSeconds }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('stall' as const), of: pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end-late' as const), of: pick, ttlSeconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('add-item' as const), of: pick, ttlSeconds }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove-item' as const), of: pick, item: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-conversation' as const), of: pick }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Some steps end it, others do not. */
const lockMs = 30_000

const exercise = (under: HistoryStoreUnderTest) => {
  const model = new HistoryModel()
  const { history, conversations, responses, chain } = callsOn(under.store)
  let count = 0
  const responseIds: string[] = []
  const conversationIds: string[] = []
  const stalled: { readonly conversation: string; readonly turnId: string }[] = []
  const newId = (kind: string): string => {
    count += 1
    return `${kind}-${count}`
  }
  const responseId = (which: number): string => picked(responseIds, which)
  const conversationId = (which: number): string => picked(conversationIds, which)
  const content = (text: string) => JSON.stringify({ type: 'message', role: 'user', content: text })
  const said = (id: string) => [`q ${id}`, `a ${id}`]
  const finished = (id: string, ttl: number) => ({
    tenant: alice,
    model: 'm',
    responseId: id,
    inputItems: [content(`q ${id}`)],
    response: JSON.stringify({ id, model: 'm', output: [JSON.parse(content(`a ${id}`))] }),
    ttlSeconds: ttl,
  })

  const addResponse = (id: string, after: string | undefined, ttl: number): void => {
    responseIds.push(id)
    model.addResponse(id, { after, added: said(id), ttlSeconds: ttl })
  }

  const follow = async (before: string, ttl: number): Promise<void> => {
    const id = newId('resp')
    const isKnown = model.texts(before) !== undefined
    const outcome = await history.append({ ...finished(id, ttl), after: { kind: 'response', id: before } })
    expect(outcome.kind).toBe(isKnown ? 'stored' : 'gone')
    if (isKnown) addResponse(id, before, ttl)
  }

  const hold = (id: string, turnId: string) =>
    history.open({ tenant: alice, continued: { kind: 'conversation', id, turnId, lockMs } })

  const begin = async (ttl: number): Promise<void> => {
    const id = newId('resp')
    await history.append({ ...finished(id, ttl), after: { kind: 'first', root: history.newRoot() } })
    addResponse(id, undefined, ttl)
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
    return model.isLocked(conversation) ? 'locked' : 'found'
  }

  /** What a turn of a conversation said is appended. */
  const finish = async (conversation: string, turnId: string, ttl: number, expected: 'stored' | 'gone') => {
    const id = newId('resp')
    const after = { kind: 'conversation', id: conversation, turnId } as const
    expect((await history.append({ ...finished(id, ttl), after })).kind).toBe(expected)
    if (expected === 'gone') return
    addResponse(id, conversation, ttl)
    model.addItems(conversation, said(id), ttl)
  }

  const converse = async (conversation: string, ttl: number): Promise<void> => {
    const turnId = newId('turn')
    const opened = await hold(conversation, turnId)
    expect(opened.kind).toBe(expectedOf(conversation))
    await finish(conversation, turnId, ttl, opened.kind === 'found' ? 'stored' : 'gone')
  }

  /** A gateway ends in the middle of a turn, or is late: its lock stays until its time is over. One of a response has none. */
  const stall = async (conversation: string): Promise<void> => {
    const turnId = newId('turn')
    const opened = await hold(conversation, turnId)
    expect(opened.kind).toBe(expectedOf(conversation))
    if (opened.kind !== 'found') return
    model.hold(conversation, turnId, lockMs)
    stalled.push({ conversation, turnId })
  }

  /** It was late: its turn is kept unless another one, or a change, came between. */
  const endLate = async (which: number, ttl: number): Promise<void> => {
    const [turn] = stalled.splice(which % Math.max(1, stalled.length), 1)
    if (turn === undefined) return
    const { conversation, turnId } = turn
    await finish(conversation, turnId, ttl, model.isHeldBy(conversation, turnId) ? 'stored' : 'gone')
  }

  const removeItem = async (id: string, which: number): Promise<void> => {
    const items = (await conversations.items({ tenant: alice, id })) ?? []
    const item = items[which % Math.max(1, items.length)]
    if (item === undefined) return
    const removed = await conversations.removeItem({ tenant: alice, id, itemId: item.id })
    expect(removed.kind).toBe(expectedOf(id) === 'found' ? 'removed' : 'locked')
    if (removed.kind === 'removed') model.removeItem(id, textOf(item))
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
      case 'stall':
        return stall(conversationId(taken.of))
      case 'end-late':
        return endLate(taken.of, taken.ttlSeconds)
      case 'add-item':
        return addItem(conversationId(taken.of), taken.ttlSeconds)
      case 'remove-item':
        return removeItem(conversationId(taken.of), taken.item)
      case 'delete-conversation':
        return removeConversation(conversationId(taken.of))
    }
  }

  const checkResponse = async (id: string): Promise<void> => {
    const expected = model.texts(id)
    if (expected === undefined) expect(await history.get({ tenant: alice, id })).toBeUndefined()
    else expect((await chain(id)).items.map(textOf)).toEqual(expected)
  }

  const check = async (): Promise<void> => {
    await Promise.all(Array.from({ length: count }, (_, index) => checkResponse(`resp-${index + 1}`)))
    for (const id of model.conversationIds())
      expect((await conversations.items({ tenant: alice, id }))?.map(textOf)).toEqual(model.conversation(id))
  }

  const removeAll = async (): Promise<void> => {
    for (const id of model.conversationIds()) await removeConversation(id)
    for (const id of responseIds) await remove(id)
  }

  return { model, take, check, removeAll }
}

const steps = fc.array(step, { minLength: 20, maxLength: 40, size: 'max' })

describe('trees of responses are as a model that keeps a copy for each id', () => {
  const redis = useTestRedis()

  test('in memory', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const { take, check } = exercise(memoryHistory())
        for (const each of taken) await take(each)
        await check()
      }),
      { numRuns: 80 },
    )
  })

  test('in Redis, where no more nodes are left than turns that something leads to', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const under = await redisHistory(redis())
        const { model, take, check, removeAll } = exercise(under)
        const expectNoMoreNodes = async (): Promise<void> => {
          const nodes = (await redis().raw.keys(`${under.prefix}*:n*`)).length
          // A turn has a question, and an item of a conversation is a turn of its own.
          const turns = [...model.alive()].filter((text) => !text.startsWith('a ')).length
          expect(nodes).toBe(turns)
        }
        for (const each of taken) await take(each)
        await check()
        await expectNoMoreNodes()
        const total = Number((await redis().raw.get((await redis().raw.keys(`${under.prefix}*:t`))[0] ?? '')) ?? 0)
        const keys = await redis().raw.keys(`${under.prefix}*:[hn]*`)
        const bytes = await Promise.all(keys.map((key) => redis().raw.hget(key, 'b')))
        const due = bytes.reduce((sum, text) => sum + Number(text), 0)
        expect(total).toBeGreaterThanOrEqual(due)
        await removeAll()
        await expectNoMoreNodes()
      }),
      { numRuns: 25 },
    )
  })
})
