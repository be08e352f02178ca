import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { llamaServers } from '../support/llama-servers.ts'
import { embeddedPods, type Stack, type StackOptions, startStack } from '../support/stack.ts'

const clients = 3
const ttlSeconds = 2

let stack: Stack

const startWith = (pods: StackOptions['pods']): Promise<Stack> =>
  startStack({
    store: 'redis',
    ...(pods && { pods }),
    env: {
      CTX_TURNS_LEASE_SECONDS: '4',
      CTX_KV_CALL_TIMEOUT_MS: '900',
      CTX_REAPER_ANNOUNCE_GRACE_MS: '1000',
      CTX_REAPER_REMOVAL_LEASE_MS: '1000',
    },
  })

afterEach(() => stack?.stop())

/** One client: creates, uses and deletes sessions. A conversation ends where a request fails: the gateway is gone. */
const converse = async (client: number, until: AbortSignal): Promise<void> => {
  for (let round = 0; !until.aborted; round += 1) {
    const prompt = `client ${client} in round ${round} tells something that is long enough to be stored and loaded again`
    const created = await attempt('/v1/context', { 'x-session-ttl': String(ttlSeconds) }, prompt)
    const id = created?.get('x-session-id')
    if (id === null || id === undefined) {
      await delay(10)
      continue
    }
    await attempt('/v1/completions', { 'x-session-id': id }, `${prompt} and more`)
    await attempt('/v1/completions', { 'x-session-id': id, 'routing-strategy': 'random' }, `${prompt} and more of it`)
    if (round % 2 === 0) await call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' }).catch(() => undefined)
  }
}

const attempt = async (path: string, headers: Record<string, string>, prompt: string): Promise<Headers | undefined> => {
  const response = await call(`${stack.url}${path}`, { headers, body: { model, prompt, max_tokens: 4 } }).catch(
    () => undefined,
  )
  return response?.status === 200 ? response.headers : undefined
}

const slotsSchema = z.array(z.object({ n_prompt_tokens: z.number().default(0) }))

const slotTokens = async (): Promise<readonly number[]> => {
  const slots = await Promise.all(
    stack.pods.map(async ({ address }) => slotsSchema.parse((await call(`http://${address}/slots`)).body)),
  )
  return slots.flat().map((slot) => slot.n_prompt_tokens)
}

/** Keys of sessions, indexes and removals: all but the store's name, tombstones (which end), the working gateway and slots. */
const leftInRedis = async (redis: Redis): Promise<readonly string[]> => {
  const keys = await redis.keys('ctx:*')
  return keys.filter((key) => !/^ctx:(store$|\{\d+\}:[swx]$|(kv:slots|routing:costs):)/.test(key))
}

/** Slots that a turn holds. */
const heldSlots = async (redis: Redis): Promise<readonly string[]> => {
  const pods = await Promise.all((await redis.keys('ctx:kv:slots:*')).map((key) => redis.hvals(key)))
  return pods.flat().filter((text) => JSON.parse(text).until > Date.now())
}

/** What is kept of a session that has ended: its state and no trace of what was said. */
const tombstoneStates = async (redis: Redis): Promise<ReadonlySet<string>> => {
  const texts = await Promise.all((await redis.keys('ctx:{*}:s')).map((key) => redis.hvals(key)))
  return new Set(texts.flat().map((text) => text.charAt(0)))
}

test.each<[string, StackOptions['pods'], number]>([
  ['the embedded engine', embeddedPods({ slots: 4 }), 10],
  ['llama-server', llamaServers([[], []]), 6],
])(
  'gateway killed at any moment of create, use and delete leaves no session, lease or KV behind in pods of %s',
  async (_name, pods, kills) => {
    stack = await startWith(pods)
    const ended = new AbortController()
    const conversations = Array.from({ length: clients }, (_, client) => converse(client, ended.signal))
    let killed = 0
    for (; killed < kills; killed += 1) {
      await delay(Math.random() * 400)
      await stack.gateway().child.kill()
      await stack.restartGateway()
    }
    const redis = new Redis(stack.redis?.url ?? '')
    try {
      // Between two kills there may never have been the time for a whole life of a session.
      await eventually(async () => expect(await tombstoneStates(redis)).toContain('d'))
      ended.abort()
      await Promise.all(conversations)
      expect(killed).toBe(kills)
      await eventually(async () => {
        expect(await stack.kvFiles()).toEqual([])
        expect((await slotTokens()).filter((tokens) => tokens > 0)).toEqual([])
        expect([await leftInRedis(redis), await heldSlots(redis)]).toEqual([[], []])
      })
      // Of deleted and of expired sessions. On a busy machine all may have been deleted.
      expect([...(await tombstoneStates(redis))].filter((state) => !['d', 'x'].includes(state))).toEqual([])
    } finally {
      ended.abort()
      redis.disconnect()
    }

    // And what is left works.
    const again = await call(`${stack.url}/v1/context`, {
      body: { model, prompt: 'Say this is a test', max_tokens: 2 },
    })
    expect(again.status).toBe(200)
  },
  300_000,
)
