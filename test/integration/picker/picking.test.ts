import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { readMetric, untilTurnsEnd } from '../support/metrics.ts'
import type { PodReply } from '../support/pod-script.ts'
import type { ScriptedPod } from '../support/scripted-pod.ts'
import { engineResponse, streamedResponse } from '../support/scripted-responses.ts'
import { cacheLine, createdId, errorOf, untilTurns, use } from '../support/sessions.ts'
import type { Stack } from '../support/stack.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const body = { model, prompt: 'word '.repeat(1000) }

/** The pod that got the request with this prompt. */
const podOf = (pods: readonly ScriptedPod[], prompt: string): ScriptedPod | undefined =>
  pods.find((pod) => pod.requests().some((request) => request.body.includes(prompt)))

const ask = (stack: Stack, prompt: string, headers: Record<string, string> = {}) =>
  call(`${stack.url}/v1/completions`, { body: { ...body, prompt }, headers })

describe('a pool of two pods', () => {
  const { stack, pods } = useScriptedStack({ wiring: 'picker', podCount: 2 })

  test('a request without a session goes where the beginning of its prompt was computed', async () => {
    const document = `a document ${'x'.repeat(8000)}`
    await ask(stack, `${document} first question`)
    const first = podOf(pods, 'first question')

    for (const question of ['second', 'third', 'fourth', 'fifth']) {
      // A pod that is still computing is no better than one that has to compute the prompt.
      await untilTurnsEnd(stack)
      expect((await ask(stack, `${document} ${question} question`)).status).toBe(200)
      expect(podOf(pods, `${question} question`)?.address).toBe(first?.address)
    }
  })

  test('the pod receives its own address, and nothing of a client’s internal headers', async () => {
    const evil = { 'x-gateway-destination-endpoint': '127.0.0.1:1', 'x-gateway-destination-endpoint-served': 'a:1' }
    expect((await ask(stack, 'evil headers', { ...evil, 'x-context-request-key': 'k' })).status).toBe(200)

    const pod = podOf(pods, 'evil headers')
    const [request] = pod?.requests().filter((one) => one.body.includes('evil headers')) ?? []
    expect(request?.headers['x-gateway-destination-endpoint']?.toString().split(',')[0]).toBe(pod?.address)
    expect(request?.headers).not.toHaveProperty('x-gateway-destination-endpoint-served')
    expect(request?.headers).not.toHaveProperty('x-context-request-key')
  })

  test('a request that its pod refuses goes to the next one, and the session follows', async () => {
    const id = await createdId(stack, { body })
    const { kv } = await untilTurns(stack, id, 1)
    const [here, there] = kv.pod === pods[0]?.address ? pods : pods.toReversed()
    here?.next((_request, reply) => reply.reset())
    const before = pods.map((pod) => pod.requests().length)

    const response = await use(stack, id, { body })

    expect(pods.map((pod) => pod.requests().length)).toEqual(before.map((requests) => requests + 1))
    expect([response.status, response.headers.get('x-session-id')]).toEqual([200, id])
    expect((await untilTurns(stack, id, 2)).kv.pod).toBe(there?.address)
  })

  test('a stream passes unchanged, each event when the pod sends it', async () => {
    const id = await createdId(stack, { body })
    await untilTurns(stack, id, 1)
    const [first = '', ...others] = streamedResponse('/v1/completions')
    let reply: PodReply | undefined
    for (const pod of pods)
      pod.otherwise((_request, its) => {
        its.write(first)
        reply = its
      })

    const response = await post(
      `${stack.url}/v1/completions`,
      { ...body, stream: true },
      { headers: { 'x-session-id': id } },
    )
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader?.read())?.value).toBe(first)
    for (const pod of pods) pod.otherwise(engineResponse())
    for (const piece of others) reply?.write(piece)
    reply?.end()
    let rest = ''
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) rest += next.value

    expect(rest).toBe(others.join(''))
    expect((await untilTurns(stack, id, 2)).tokens).toMatchObject({ prompt: 200, output: 6 })
  })

  test('a body of 1 MB arrives whole, in chunks', async () => {
    const prompt = `big ${'y'.repeat(1_000_000)}`
    const id = await createdId(stack, { body })
    expect((await use(stack, id, { body: { model, prompt } })).status).toBe(200)

    const [request] = podOf(pods, 'big yyy')?.requests().slice(-1) ?? []
    expect(JSON.parse(request?.body ?? '{}')).toEqual({ model, prompt })
  })
})

const subsetFilter = (hint: string): string => `http_filters:
                  - name: envoy.filters.http.set_metadata
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
                      metadata: [{ metadata_namespace: envoy.lb.subset_hint, value: { x-gateway-destination-endpoint-subset: ${hint} } }]
`

describe('a subset', () => {
  const { stack, pods } = useScriptedStack({
    wiring: 'picker',
    podCount: 3,
    envoyConfig: (text) => text.replace('http_filters:\n', subsetFilter(`["${pods[1]?.address}"]`)),
  })

  test('limits the pods, also for a session', async () => {
    const id = await createdId(stack, { body })
    for (const question of ['one', 'two', 'three']) await ask(stack, `subset ${question}`)
    await use(stack, id, { body })

    expect(pods.map((pod) => pod.requests().length)).toEqual([0, 5, 0])
  })
})

describe('a subset without a pod of the pool', () => {
  const { stack } = useScriptedStack({
    wiring: 'picker',
    envoyConfig: (text) => text.replace('http_filters:\n', subsetFilter('"10.0.0.9:80,10.0.0.8"')),
  })

  test('is answered 503', async () => {
    const response = await ask(stack, 'nowhere')
    expect([response.status, errorOf(response)]).toMatchObject([503, { code: 'no_ready_endpoints' }])
  })
})

describe('a pool that is full', () => {
  const { stack, pod } = useScriptedStack({
    wiring: 'picker',
    env: { CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1', CTX_ADMISSION_MAX_WAITING: '0' },
  })

  test('is answered 429, with and without a session', async () => {
    let release = (): void => {}
    pod.next((_request, reply) => {
      release = () => reply.json(200, {})
    })
    const running = ask(stack, 'holds the pod')
    await eventually(() => expect(podOf([pod], 'holds the pod')).toBeDefined())

    const refused = [
      await ask(stack, 'too many'),
      await call(`${stack.url}/v1/context`, { body }),
      await use(stack, `ctx_${'u'.repeat(32)}`, { body }),
    ]

    release()
    expect((await running).status).toBe(200)
    expect(refused.map(({ status }) => status)).toEqual([429, 429, 429])
    expect(refused.map(errorOf)).toMatchObject(refused.map(() => ({ code: 'rate_limit_exceeded' })))
    await eventually(async () => expect((await ask(stack, 'has room')).status).toBe(200))
  })
})

describe.each([
  { allow: false, without: 503 },
  { allow: true, without: 200 },
])('a pool of one pod, with failure_mode_allow $allow', ({ allow, without }) => {
  const { stack, pod } = useScriptedStack({
    wiring: 'picker',
    envoyConfig: (text) => text.replace('failure_mode_allow: false', `failure_mode_allow: ${allow}`),
  })

  test('a gateway that dies in the middle of an answer: it is cut, and the next gateway takes turns', async () => {
    const id = await createdId(stack, { body })
    await untilTurns(stack, id, 1)
    pod.next((_request, reply) => reply.write('data: one\n\n'))
    const headers = { 'x-session-id': id }
    const response = await post(`${stack.url}/v1/completions`, { ...body, stream: true }, { headers })
    const reader = response.body?.getReader()
    await reader?.read()

    await stack.gateway().child.kill()

    await expect(reader?.read()).rejects.toThrow()
    await eventually(async () => expect((await ask(stack, 'without a gateway')).status).toBe(without))
    expect(podOf([pod], 'without a gateway') !== undefined).toBe(allow)
    await stack.restartGateway()
    // The store was the memory of the gateway that died.
    await eventually(async () => {
      expect(cacheLine(await use(stack, id, { body }))).toBe('miss; reason=session_not_found')
    })
  })

  test('a pod that is not there: 503, before and after the gateway notices', async () => {
    await pod.stop()
    const first = await ask(stack, 'nobody')
    expect([first.status, errorOf(first)]).toMatchObject([503, { code: 'no_ready_endpoints' }])
    await eventually(async () => {
      expect(await readMetric(stack, 'pods')).toMatchObject({ 'pool="default",state="ready"': 0 })
    })
    const second = await ask(stack, 'nobody')
    expect([second.status, errorOf(second)]).toMatchObject([503, { code: 'no_ready_endpoints' }])
    await pod.start()
    await eventually(async () => expect((await ask(stack, 'somebody')).status).toBe(200))
  })

  test('a gateway that is stopped ends after the answer that it carries', async () => {
    const id = await createdId(stack, { body })
    await untilTurns(stack, id, 1)
    const [first = '', ...others] = streamedResponse('/v1/completions')
    let reply: PodReply | undefined
    pod.next((_request, its) => {
      its.write(first)
      reply = its
    })
    const headers = { 'x-session-id': id }
    const response = await post(`${stack.url}/v1/completions`, { ...body, stream: true }, { headers })

    const ended = stack.gateway().child.stop({ graceMs: 60_000 })
    // It takes no new requests.
    await eventually(async () => expect((await ask(stack, 'too late')).status).toBe(without))
    expect(stack.gateway().child.isRunning()).toBe(true)
    for (const piece of others) reply?.write(piece)
    reply?.end()

    expect(await response.text()).toBe([first, ...others].join(''))
    expect(await ended).toEqual({ code: 0, signal: undefined })
  })
})
