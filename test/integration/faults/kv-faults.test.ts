import { afterEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { model } from '../support/client.ts'
import { metric, podChanges } from '../support/metrics.ts'
import { cacheLine, createdId, prompt, remove, untilStored, untilTurns, use, view } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'
import { type EngineProxy, type Interception, startEngineProxies } from './engine-proxy.ts'

let proxies: readonly EngineProxy[] = []
const undo: (() => unknown)[] = []
const sessions: string[] = []

const stack = useStack({
  pods: async (kvDirectory) => {
    proxies = await startEngineProxies({ count: 2, kvDirectory, slots: 2 })
    return proxies
  },
  env: {
    // A session's turns run in one pod, so that the other one has to load its KV.
    CTX_ROUTING_POLICY: 'session-affinity',
    CTX_ROUTING_HEALTH_INTERVAL_MS: '100',
    // A turn waits for a load as long as it would compute, here about 1.4 seconds: less than a call may take.
    CTX_KV_PREFILL_MS_PER_TOKEN: '20',
    CTX_KV_CALL_TIMEOUT_MS: '2000',
  },
})
afterEach(async () => {
  await heal()
  // No file comes after the test that it belongs to.
  await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
  await Promise.all(sessions.map((id) => untilAllIsStored(id)))
  await Promise.all(sessions.splice(0).map((id) => remove(stack, id)))
})

const body = { model, prompt: prompt(10), max_tokens: 2 }
/** Each continues the one before. */
const longerBody = { ...body, prompt: prompt(13) }
const longestBody = { ...body, prompt: prompt(16) }

const everywhere = (beginning: RegExp, interception: Interception): void => {
  undo.push(...proxies.map((proxy) => proxy.intercept(beginning, interception)))
}

/** Lets what was disturbed work again. */
const heal = async (): Promise<void> => {
  for (const step of undo.splice(0)) await step()
}

/** Does something while the session's pod is out of the routing. */
const elsewhere = async <T>(id: string, act: () => Promise<T>): Promise<T> => {
  const address = (await view(stack, id)).kv.pod ?? ''
  const home = proxies.find((proxy) => proxy.address === address)
  const leftBefore = podChanges(stack, 'failing', address)
  const returnedBefore = podChanges(stack, 'ready', address)
  home?.pod.setHealthy(false)
  try {
    await eventually(() => expect(podChanges(stack, 'failing', address)).toBe(leftBefore + 1))
    return await act()
  } finally {
    home?.pod.setHealthy(true)
    await eventually(() => expect(podChanges(stack, 'ready', address)).toBe(returnedBefore + 1))
  }
}

const untilAllIsStored = (id: string): Promise<void> =>
  eventually(async () => {
    const seen = await view(stack, id)
    expect(seen.kv.stored?.turn).toBe(seen.turns)
  })

const newSession = async (): Promise<string> => {
  const id = await createdId(stack, { body })
  sessions.push(id)
  return id
}

const storedSession = async (): Promise<string> => {
  const id = await newSession()
  await untilStored(stack, id, 1)
  return id
}

const answers500: Interception = (_request, reply) => reply.json(500, { error: { message: 'no' } })
const answers400: Interception = (_request, reply) => reply.json(400, { error: { message: 'no' } })
const resets: Interception = (_request, reply) => reply.reset()
const saysNonsense: Interception = (_request, reply) => reply.json(200, [{ id: 'zero' }])
/** Answers once all is well again, as an engine does that was busy. */
const isLate: Interception = async (_request, _reply, passOn) => {
  await new Promise<void>((resolve) => undo.push(resolve))
  await passOn()
}

describe('a load that fails', () => {
  const restore = /^POST \/slots\/\d+\?action=restore/
  const list = /^GET \/slots/
  test.each([
    { what: 'takes too long', at: restore, does: isLate, reason: 'load_timeout' },
    { what: 'fails', at: restore, does: answers500, reason: 'load_failed' },
    { what: 'breaks off', at: restore, does: resets, reason: 'load_failed' },
    { what: 'is refused as foreign', at: restore, does: answers400, reason: 'load_failed' },
    { what: 'meets a pod that does not list its slots', at: list, does: isLate, reason: 'load_timeout' },
    { what: 'meets a pod that cannot list its slots', at: list, does: answers500, reason: 'load_failed' },
    { what: 'meets a pod that returns nonsense', at: list, does: saysNonsense, reason: 'load_failed' },
    { what: 'meets a pod that hangs up', at: list, does: resets, reason: 'load_failed' },
  ])('because it $what: the turn is forwarded without it', async ({ at, does, reason }) => {
    const id = await storedSession()
    const degradedBefore = await metric(stack, 'degraded_total', { reason })

    const response = await elsewhere(id, () => {
      everywhere(at, does)
      return use(stack, id, { body: longerBody })
    })
    await heal()

    expect(response.status).toBe(200)
    expect(response.body).toMatchObject({ usage: { prompt_tokens: expect.any(Number) } })
    expect(cacheLine(response)).toBe(`miss; reason=${reason}`)
    expect(response.headers.get('x-session-id')).toBe(id)
    expect(await metric(stack, 'degraded_total', { reason })).toBe(degradedBefore + 1)
    await untilTurns(stack, id, 2)
    await eventually(async () => expect(cacheLine(await use(stack, id, { body: longestBody }))).toMatch(/^hit; /))
  })
})

describe('an offload that fails', () => {
  const save = /^POST \/slots\/\d+\?action=save/

  test.each([
    { what: 'the engine answers 500', disturb: async () => everywhere(save, answers500) },
    { what: 'the engine hangs up', disturb: async () => everywhere(save, resets) },
    { what: 'the engine does not answer', disturb: async () => everywhere(save, isLate) },
  ])('because $what: the answer is whole, the session says so, and later turns are stored', async ({ disturb }) => {
    await disturb()

    const id = await newSession()
    const first = await eventually(async () => {
      const seen = await view(stack, id)
      expect(seen.kv.note).not.toBeNull()
      return seen
    })
    const second = await elsewhere(id, () => use(stack, id, { body: longerBody }))
    await untilTurns(stack, id, 2)
    await heal()

    expect(first).toMatchObject({ turns: 1, kv: { stored: null, note: 'offload_failed' } })
    expect(second.status).toBe(200)
    expect(cacheLine(second)).toBe('none; reason=offload_failed')
    const stored = await eventually(async () => {
      expect((await use(stack, id, { body: longestBody })).status).toBe(200)
      const seen = await view(stack, id)
      expect(seen.kv.stored).not.toBeNull()
      return seen
    })
    expect(stored.kv.note).toBeNull()
    await untilAllIsStored(id)
    const next = await elsewhere(id, () => use(stack, id, { body: { ...body, prompt: prompt(18) } }))
    expect(cacheLine(next)).toMatch(/^hit; tier=store; /)
  })
})
