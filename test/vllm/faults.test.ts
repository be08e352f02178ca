import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import type { Stack } from '../integration/support/stack.ts'
import { orderServer } from './support/control.ts'
import { eventually } from './support/eventually.ts'
import { vllmFleet } from './support/fleet.ts'
import { freshPrompt } from './support/prompts.ts'
import { moveToOtherPod, readHit, type SessionClient, sessionClient } from './support/session.ts'
import { startVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(300_000)

let stack: Stack
let client: SessionClient
let id: string
let prompt: string

beforeAll(async () => {
  stack = await startVllmStack()
  client = sessionClient(stack)
}, 120_000)
afterAll(async () => {
  await stack?.stop()
}, 60_000)
beforeEach(async () => {
  prompt = freshPrompt(450)
  ;({ id } = await client.create(prompt))
  await client.settled(id, 1)
})
afterEach(async () => {
  await client.remove(id)
})

/** Waits until a session can be stored and loaded again. */
const untilItWorks = (): Promise<unknown> =>
  eventually(
    async () => {
      const text = freshPrompt(200)
      const { id: probe } = await client.create(text)
      const { kv } = await client.settled(probe, 1)
      await client.remove(probe)
      return kv.stored
    },
    (stored) => stored !== null,
    120_000,
  )

describe.each([
  { name: 'the coordinator is dead', bring: 'kill', end: 'restart', server: () => 'coordinator' },
  { name: 'the coordinator hangs', bring: 'pause', end: 'resume', server: () => 'coordinator' },
] as const)('$name', ({ bring, end, server }) => {
  test('every turn is answered, and soon without asking', async () => {
    await orderServer(server(), bring)
    try {
      const lines: string[] = []
      for (let turn = 0; turn < 6; turn += 1) {
        prompt += ' more'
        const { cache } = await client.use(id, prompt, { headers: { 'routing-strategy': 'round-robin' } })
        lines.push(cache)
      }
      const fresh = await client.create(freshPrompt(200))

      expect(
        lines.every((line) =>
          /^hit; tier=gpu|^miss; reason=(load_timeout|load_failed|kv_store_unavailable)$/.test(line),
        ),
      ).toBe(true)
      expect(lines).toContain('miss; reason=kv_store_unavailable')
      expect(fresh.cache).toBe('miss; reason=new_session')
      await client.remove(fresh.id)
    } finally {
      await orderServer(server(), end)
    }
    await untilItWorks()
  })
})

describe('an LMCache server is dead', () => {
  test('turns on its pod go on', async () => {
    const { kv } = await client.view(id)
    const pod = vllmFleet().pods.findIndex(({ address }) => address !== kv.pod)
    await orderServer(`lmcache-${pod}`, 'kill')
    try {
      for (let turn = 0; turn < 4; turn += 1) {
        prompt += ' more'
        const { cache } = await client.use(id, prompt, { headers: { 'routing-strategy': 'round-robin' } })
        expect(cache).toMatch(/^(hit|miss)/)
      }
    } finally {
      await orderServer(`lmcache-${pod}`, 'restart')
    }
    await untilItWorks()
  })
})

describe('the coordinator was restarted', () => {
  test('a session is found again, or computed, and then stored anew', async () => {
    await orderServer('coordinator', 'restart')

    const { turn } = await moveToOtherPod(client, { id, prompt })

    expect(turn.cache).toMatch(/^(hit|miss)/)
    await untilItWorks()
  })
})

describe('nothing is told of a conversation', () => {
  test('in metrics, logs and the configuration page', async () => {
    await moveToOtherPod(client, { id, prompt })
    const admin = stack.gateway().adminUrl
    const pages = await Promise.all(['/metrics', '/config'].map((path) => call(`${admin}${path}`)))

    const told = [stack.output(), ...pages.map(({ text }) => text)].join('\n')
    expect(told).not.toContain(prompt.slice(0, 40))
    expect(told).not.toContain(id)
  })
})

describe('a fleet whose events nobody follows', () => {
  let blind: Stack
  beforeAll(async () => {
    blind = await startVllmStack({ env: { CTX_KV_EVENTS: 'off' } })
  }, 120_000)
  afterAll(async () => {
    await blind?.stop()
  }, 60_000)

  test('loads the first prompt, leaves the rest to the engine, and says so', async () => {
    const blindClient = sessionClient(blind)
    let text = freshPrompt(450)
    const created = await blindClient.create(text)
    const first = await blindClient.settled(created.id, 1)
    const moved = await moveToOtherPod(blindClient, { id: created.id, prompt: text })
    text = `${moved.prompt} ${freshPrompt(300)}`
    await blindClient.use(created.id, text)
    const grown = await eventually(
      () => blindClient.view(created.id),
      ({ kv }) => (kv.stored?.tokens ?? 0) > (first.kv.stored?.tokens ?? 0),
    )
    const last = await moveToOtherPod(blindClient, { id: created.id, prompt: text })

    expect(readHit(moved.turn.cache)).toMatchObject({ tier: 'store', tokens: first.kv.stored?.tokens })
    expect(readHit(last.turn.cache)).toMatchObject({
      tier: 'store',
      tokens: grown.kv.stored?.tokens,
      load: 'on-demand',
    })
    expect(last.turn.cachedTokens).toBeGreaterThanOrEqual(grown.kv.stored?.tokens ?? Number.NaN)
    await blindClient.remove(created.id)
  })
})
