import { afterEach, describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { eventually } from '../../support/eventually.ts'
import { readMetric } from '../support/metrics.ts'
import { openai } from '../support/openai-client.ts'
import { useScriptedStack } from '../support/use-stack.ts'
import { holdRequests, inUse, send, waiting } from './support.ts'

/** Starts a stack for a suite, whose pods hold their requests. */
const useHoldingPods = (options: Parameters<typeof useScriptedStack>[0]) => {
  const { stack, pods: scripted } = useScriptedStack(options)
  const pods = scripted.map(holdRequests)
  const [pod] = pods
  if (pod === undefined) throw new Error('a stack has a pod')
  const running = (): readonly string[] => pods.flatMap((one) => one.running())
  return {
    stack,
    pods,
    pod,
    running,
    untilRunning: (...models: readonly string[]) => eventually(() => expect(running()).toEqual(models)),
    untilWaiting: (count: number) => eventually(async () => expect(await waiting(stack)).toBe(count)),
    /** Ends all turns, so that the next test begins with all resources free. */
    settle: async (): Promise<void> => {
      for (const one of pods) one.release(true)
      await eventually(async () => expect([await waiting(stack), await inUse(stack)]).toEqual([0, 0]))
      for (const one of pods) one.release(false)
    },
  }
}

describe('models A, B and C on one device', () => {
  const { stack, pod, running, untilRunning, untilWaiting, settle } = useHoldingPods({
    env: {
      CTX_ADMISSION_REQUIREMENTS: 'prefill/A=R1:4 R2:4, prefill/B=R2:5 R3:10 R4:5, prefill/C=R1:1 R3:7 R4:2',
      CTX_ADMISSION_PRIORITIES: 'A=1, B=2, C=2',
      CTX_ADMISSION_MAX_WAITING: '3',
      CTX_ADMISSION_MAX_WAIT_MS: '15000',
    },
  })
  afterEach(settle)

  test('have as many copies of each resource as the largest requirement names', async () => {
    expect(await readMetric(stack, 'admission_resource_capacity')).toEqual({
      [`resource="R1",pod="${pod.pod.address}"`]: 4,
      [`resource="R2",pod="${pod.pod.address}"`]: 5,
      [`resource="R3",pod="${pod.pod.address}"`]: 10,
      [`resource="R4",pod="${pod.pod.address}"`]: 5,
    })
  })

  test('run one after the other, because each two of them need the same resource', async () => {
    const responses = [send(stack, 'A')]
    await untilRunning('A')
    responses.push(send(stack, 'B'))
    await untilWaiting(1)
    responses.push(send(stack, 'C'))
    await untilWaiting(2)
    expect(running()).toEqual(['A'])
    pod.respond('A')
    await untilRunning('B')
    pod.respond('B')
    await untilRunning('C')
    pod.respond('C')
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200, 200])
  })

  test('are refused with 429 and Retry-After when the queue is full, the last in the order first', async () => {
    const served = [send(stack, 'A')]
    await untilRunning('A')
    const second = send(stack, 'B')
    await untilWaiting(1)
    const last = send(stack, 'C')
    await untilWaiting(2)
    served.push(send(stack, 'A'), second)
    await untilWaiting(3)

    const newcomer = await send(stack, 'B')
    expect(newcomer.status).toBe(429)
    expect(newcomer.headers.get('retry-after')).toBe('15')
    expect(newcomer.headers.get('x-should-retry')).toBe('true')
    expect(newcomer.headers.get('content-type')).toBe('application/json')
    expect(newcomer.body).toMatchObject({
      error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null, message: expect.any(String) },
    })

    // A model of a higher priority takes the place of the one that is last.
    served.push(send(stack, 'A'))
    expect((await last).status).toBe(429)
    pod.release(true)
    expect((await Promise.all(served)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await readMetric(stack, 'admission_refused_total')).toMatchObject({ 'kind="prefill",reason="full"': 2 })
  })
})

describe('two devices with R1:10, R2:5:0, R2:8:1 and R3:2, of which R3 is global', () => {
  const { stack, pods, untilWaiting, settle } = useHoldingPods({
    podCount: 2,
    env: {
      CTX_ADMISSION_REQUIREMENTS: 'prefill/small=R2:1, prefill/large=R1:5 R3:1',
      CTX_ADMISSION_RESOURCES: 'R1:10, R2:5:0, R2:8:1, R3:2',
      CTX_ADMISSION_GLOBAL_RESOURCES: 'R3',
      CTX_ROUTING_POLICY: 'round-robin',
      CTX_ADMISSION_MAX_WAIT_MS: '15000',
    },
  })
  afterEach(settle)

  test('have the counts of the document', async () => {
    const [first, second] = pods.map(({ pod }) => pod.address)
    expect(await readMetric(stack, 'admission_resource_capacity')).toEqual({
      'resource="R3",pod="global"': 2,
      [`resource="R1",pod="${first}"`]: 10,
      [`resource="R2",pod="${first}"`]: 5,
      [`resource="R1",pod="${second}"`]: 10,
      [`resource="R2",pod="${second}"`]: 8,
    })
  })

  test.each([
    ['5 and 8 turns that require one of R2', 'small', 20, [5, 8], 7],
    ['two turns that require one of R3, which is global', 'large', 5, [1, 1], 3],
  ] as const)('run %s, and the others wait', async (_name, model, turns, runningPerPod, waits) => {
    const responses = Array.from({ length: turns }, () => send(stack, model))
    await eventually(() => expect(pods.map((pod) => pod.running().length)).toEqual(runningPerPod))
    await untilWaiting(waits)
    expect(pods.map((pod) => pod.running().length)).toEqual(runningPerPod)
    for (const pod of pods) pod.release(true)
    expect(new Set((await Promise.all(responses)).map(({ status }) => status))).toEqual(new Set([200]))
  })
})

describe('a queue that waits at most 2.5 s', () => {
  const { stack, pod, untilRunning } = useHoldingPods({
    envoyWaits: 'as-configured',
    env: {
      CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1',
      CTX_ADMISSION_MAX_WAIT_MS: '2500',
    },
  })

  test('a turn is refused after maxWaitMs, which is longer than Envoy’s message timeout', async () => {
    const first = send(stack, 'A')
    await untilRunning('A')
    const refused = openai(stack.url, { headers: { 'x-session-ttl': '60' } }).completions.create({
      model: 'A',
      prompt: 'Say this is a test',
    })
    await expect(refused).rejects.toThrow(OpenAI.RateLimitError)
    expect(await readMetric(stack, 'admission_refused_total')).toMatchObject({ 'kind="prefill",reason="timeout"': 1 })
    pod.release(true)
    expect((await first).status).toBe(200)
  })
})
