import { afterEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, type HttpResponse } from '../support/client.ts'
import { isReady, metric } from '../support/metrics.ts'
import type { PodScript } from '../support/pod-script.ts'
import type { ScriptedPod } from '../support/scripted-pod.ts'
import { engineResponse, inferenceBodies, inferencePaths, streamedResponse } from '../support/scripted-responses.ts'
import { create, createdId, errorOf, look, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack, pods } = useScriptedStack({ podCount: 2, env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100' } })
afterEach(() => bringBack())

const body = inferenceBodies['/v1/completions']

const stopped = new Set<ScriptedPod>()

const stop = async (pod: ScriptedPod): Promise<void> => {
  stopped.add(pod)
  await pod.stop()
}

/** Starts what was stopped, lets all pods answer, and waits until they get turns again. */
const bringBack = async (): Promise<void> => {
  for (const pod of stopped) await pod.start()
  stopped.clear()
  for (const pod of pods) pod.otherwise(engineResponse())
  await eventually(async () => {
    const served = await Promise.all(
      Array.from({ length: 8 }, () =>
        use(stack, 'of-another-system', { body, headers: { 'routing-strategy': 'random' } }),
      ),
    )
    expect(new Set(served.map(({ status }) => status))).toEqual(new Set([200]))
    expect(pods.every(({ address }) => isReady(stack, address))).toBe(true)
  })
}

const untilOut = ({ address }: ScriptedPod) => eventually(() => !isReady(stack, address))

/** A session, the pod that it was created on, and the other one. */
const sessionOnPod = async () => {
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  const address = (await view(stack, id)).kv.pod
  const [home, other] = pods[0]?.address === address ? pods : pods.toReversed()
  if (home === undefined || other === undefined) throw new Error('there are two pods')
  return { id, home, other }
}

const turnsOf = (pod: ScriptedPod): number => pod.requests().length

const reset: PodScript = (_request, reply) => reply.reset()

describe('the chosen pod fails before it answers', () => {
  test.each(inferencePaths)('by a reset connection: another pod serves, and the session follows: %s', async (path) => {
    const { id, home, other } = await sessionOnPod()
    const before = [home, other].map(turnsOf)
    home.next(reset)

    const response = await use(stack, id, { path, body: inferenceBodies[path] })

    expect(response.status).toBe(200)
    expect(response.headers.get('x-session-id')).toBe(id)
    expect([home, other].map(turnsOf)).toEqual(before.map((turns) => turns + 1))
    expect((await untilTurns(stack, id, 2)).kv.pod).toBe(other.address)
  })

  test.each(inferencePaths)('by a closed port: another pod serves, and the session follows: %s', async (path) => {
    const { id, home, other } = await sessionOnPod()
    await stop(home)

    const response = await use(stack, id, { path, body: inferenceBodies[path] })

    expect(response.status).toBe(200)
    expect((await untilTurns(stack, id, 2)).kv.pod).toBe(other.address)
  })

  test('while a session is created: another pod serves it', async () => {
    let failed: string | undefined
    for (const pod of pods) {
      pod.otherwise((request, reply) => {
        if (failed !== undefined) return engineResponse()(request, reply)
        failed = pod.address
        reply.reset()
      })
    }

    const id = await createdId(stack, { body })

    const seen = await untilTurns(stack, id, 1)
    expect(failed).toBeDefined()
    expect(pods.map(({ address }) => address).filter((address) => address !== failed)).toEqual([seen.kv.pod])
  })
})

describe('a pod that is away', () => {
  test('gets no turns, and gets them again when it is back', async () => {
    const { id, home } = await sessionOnPod()
    await stop(home)
    await use(stack, id, { body })
    await untilOut(home)
    await home.start()
    stopped.delete(home)
    home.setHealthy(false)
    const before = turnsOf(home)

    const responses = await Promise.all(
      Array.from({ length: 20 }, () => use(stack, id, { body, headers: { 'routing-strategy': 'random' } })),
    )

    expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(turnsOf(home)).toBe(before)
    home.setHealthy(true)
    await eventually(async () => {
      await use(stack, id, { body, headers: { 'routing-strategy': 'round-robin' } })
      expect(turnsOf(home)).toBeGreaterThan(before)
    })
  })
})

describe('the chosen pod fails in the middle of its answer', () => {
  test.each(inferencePaths)('the stream is cut, the session stays, and goes on elsewhere: %s', async (path) => {
    const { id, home } = await sessionOnPod()
    const upstreamFailed = { outcome: 'upstream_failed' }
    const failedBefore = await metric(stack, 'turns_total', upstreamFailed)
    home.next(async (_request, reply) => {
      reply.write(streamedResponse(path)[0] ?? '')
      await eventually(() => expect(reply.response.writableLength).toBe(0))
      reply.reset()
    })

    await expect(use(stack, id, { path, body: { ...inferenceBodies[path], stream: true } })).rejects.toThrow()

    await eventually(async () => expect(await metric(stack, 'turns_total', upstreamFailed)).toBe(failedBefore + 1))
    expect((await view(stack, id)).turns).toBe(1)
    const next = await use(stack, id, { path, body: inferenceBodies[path] })
    expect(next.status).toBe(200)
    await untilTurns(stack, id, 2)
  })
})

describe('no pod is ready', () => {
  const expectNoEndpoints = (response: HttpResponse): void => {
    expect(response.status).toBe(503)
    expect(errorOf(response)).toMatchObject({ type: 'api_error', code: 'no_ready_endpoints' })
    expect(response.headers.get('x-session-id')).toBeNull()
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  }

  test('every request that needs one gets 503, and the session stays', async () => {
    const { id } = await sessionOnPod()
    await Promise.all(pods.map(stop))
    await Promise.all(pods.map(untilOut))

    for (const path of inferencePaths) {
      expectNoEndpoints(await use(stack, id, { path, body: inferenceBodies[path] }))
      expectNoEndpoints(await create(stack, { path, body: inferenceBodies[path], headers: { 'x-session-ttl': '60' } }))
    }
    expectNoEndpoints(await create(stack, { body }))
    expect((await look(stack, id)).status).toBe(200)
    const list = await call(`${stack.url}/v1/context?limit=100`)
    expect(list.body).toMatchObject({ data: expect.arrayContaining([expect.objectContaining({ id, turns: 1 })]) })

    await bringBack()
    expect((await use(stack, id, { body })).status).toBe(200)
    await untilTurns(stack, id, 2)
  })

  test('a request without a session gets its error as JSON', async () => {
    await Promise.all(pods.map(stop))

    const response = await call(`${stack.url}/v1/completions`, { body })

    expect(response.status).toBe(503)
    expect(errorOf(response)).toMatchObject({ type: 'api_error', code: 'service_unavailable' })
  })

  test('before the gateway notices: the error is JSON, and no turn is counted', async () => {
    const { id } = await sessionOnPod()
    const failedBefore = await metric(stack, 'turns_total', { outcome: 'upstream_failed' })
    for (const pod of pods) pod.otherwise(reset)

    const used = await use(stack, id, { body })
    await bringBack()
    for (const pod of pods) pod.otherwise(reset)
    const created = await create(stack, { body })

    for (const response of [used, created]) {
      expect(response.status).toBe(503)
      expect(response.headers.get('x-session-id')).toBeNull()
      expect(errorOf(response)).toMatchObject({ type: 'api_error' })
    }
    await eventually(async () => {
      expect(await metric(stack, 'turns_total', { outcome: 'upstream_failed' })).toBe(failedBefore + 2)
    })
    expect(await view(stack, id)).toMatchObject({ turns: 1 })
  })
})
