import { expect, test } from '@jest/globals'
import { StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { alice, bob, callsOn, message, nameOf } from './history-calls.ts'
import { describeHistory } from './history-suite.ts'
import { redisHistory } from './history-under-test.ts'

const redis = useTestRedis()

describeHistory('the history in Redis', () => redisHistory(redis()))

test('a dump shows no text, no id and no name of a conversation’s metadata', async () => {
  const { store, prefix } = await redisHistory(redis())
  const { begin, follow, hold, converse, newConversation } = callsOn(store)
  const words = 'marmalade '.repeat(20)
  await begin('resp_pineapple1', { inputItems: [message(words)] })
  await follow('resp_pineapple1', 'resp_pineapple2')
  const id = await newConversation({ metadata: { kumquat: 'persimmon' }, items: [message(words)] })
  await hold(id, 'turn-1')
  await converse(id, 'turn-1', 'resp_pineapple3')

  const keys = await redis().raw.keys(`${prefix}*`)
  const dumps = await Promise.all(keys.map(async (key) => key + (await redis().raw.dumpBuffer(key)).toString('latin1')))
  const all = [...dumps, JSON.stringify(await Promise.all(hashesOf(keys)))].join('\n')
  expect(keys.length).toBeGreaterThan(8)
  for (const secret of ['marmalade', 'pineapple', 'question', 'answer resp', 'kumquat', 'persimmon', 'a-model', id])
    for (const form of [secret, Buffer.from(secret).toString('base64').slice(0, -4)]) expect(all).not.toContain(form)
})

const hashesOf = (keys: readonly string[]): readonly Promise<unknown>[] =>
  keys.map(async (key) => ((await redis().raw.type(key)) === 'hash' ? redis().raw.hgetall(key) : undefined))

test('nothing is left of what was deleted, and every key ends by itself', async () => {
  const { store, prefix } = await redisHistory(redis())
  const { begin, follow, responses, conversations, newConversation, hold, converse } = callsOn(store)
  await begin('r1')
  await follow('r1', 'left')
  await follow('r1', 'right', { ttlSeconds: 1_000 })
  const id = await newConversation({ items: [message('hello')] })
  await hold(id, 'turn-1')
  await converse(id, 'turn-1', 'r2')
  for (const key of await redis().raw.keys(`${prefix}*`)) expect(await redis().raw.pttl(key)).toBeGreaterThan(0)
  for (const gone of ['r1', 'left', 'right', 'r2']) await responses.remove({ tenant: alice, id: gone })
  await conversations.remove({ tenant: alice, id })

  expect(await redis().raw.keys(`${prefix}*`)).toEqual([])
})

test('the text of a node ends with the last response that it leads to', async () => {
  const { store, prefix } = await redisHistory(redis())
  const { begin, follow, responses } = callsOn(store)
  await begin('r1', { ttlSeconds: 10 })
  await follow('r1', 'left', { ttlSeconds: 500 })
  await follow('r1', 'right', { ttlSeconds: 50 })
  const endsOfRoot = async (): Promise<number> => {
    const nodes = await redis().raw.keys(`${prefix}*:n*.1`)
    return Math.max(...(await Promise.all(nodes.map((key) => redis().raw.pttl(key)))))
  }

  expect(await endsOfRoot()).toBeGreaterThan(400_000)
  await responses.remove({ tenant: alice, id: 'left' })
  expect(await endsOfRoot()).toBeLessThanOrEqual(50_000)
  expect(await endsOfRoot()).toBeGreaterThan(10_000)
})

test('all keys of a call lie in one hash slot, those of tenants in their own', async () => {
  const { store, prefix } = await redisHistory(redis())
  const { begin } = callsOn(store)
  await begin('r1')
  await begin('r1', { tenant: bob })

  const tags = (await redis().raw.keys(`${prefix}*`)).map((key) => /\{([^}]+)\}/.exec(key)?.[1])
  expect(new Set(tags)).toEqual(new Set([nameOf(alice), nameOf(bob)]))
})

test('a full Redis keeps nothing more, while reading and deleting go on', async () => {
  const { store, prefix } = await redisHistory(redis())
  const { begin, follow, texts, responses, newConversation, conversations, hold, history } = callsOn(store)
  await begin('r1')
  await follow('r1', 'r2')
  const id = await newConversation({ items: [message('hello')] })
  await redis().raw.config('SET', 'maxmemory', '1')
  try {
    await expect(follow('r2', 'r3')).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await texts('r2')).toEqual(['question r1', 'answer r1', 'question r2', 'answer r2'])
    expect(await hold(id, 'turn-1')).toMatchObject({ kind: 'found' })
    await history.release({ tenant: alice, conversationId: id, turnId: 'turn-1' })
    const [item] = (await conversations.items({ tenant: alice, id })) ?? []
    expect(await conversations.removeItem({ tenant: alice, id, itemId: item?.id ?? '' })).toMatchObject({
      kind: 'removed',
    })
    for (const gone of ['r1', 'r2']) expect((await responses.remove({ tenant: alice, id: gone })).kind).toBe('deleted')
    await responses.forgetTenant(nameOf(alice))
    expect(await redis().raw.keys(`${prefix}*`)).toEqual([])
  } finally {
    await redis().raw.config('SET', 'maxmemory', '0')
  }
})

test('a Redis that is gone is a store that is unavailable', async () => {
  const connection = await redis().connect()
  const { store } = await redisHistory({ ...redis(), connect: async () => connection })
  await connection.close()

  await expect(callsOn(store).begin('r1')).rejects.toBeInstanceOf(StoreUnavailableError)
})
