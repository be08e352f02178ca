import { afterAll, describe, expect, test } from '@jest/globals'
import { attributes } from '../../../src/tracing/attributes.ts'
import { eventually } from '../../support/eventually.ts'
import { type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { call, model } from '../support/client.ts'
import { createdId, prompt, untilStored, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useScriptedStack, useStack } from '../support/use-stack.ts'

const receiver = await startOtlpReceiver()
afterAll(() => receiver.stop())

const printsModules = {
  NODE_OPTIONS: `--import ${new URL('../../support/print-loaded-modules.mjs', import.meta.url).href}`,
}
const on = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpan = '00f067aa0ba902b7'
const traceparentOf = (flags: '00' | '01', trace = traceId) => ({ traceparent: `00-${trace}-${callerSpan}-${flags}` })

/** Spans of a trace, once one request and its end have come: perhaps from two gateways, in any order. */
const traceOf = async (id: string): Promise<readonly ReceivedSpan[]> =>
  await eventually(() => {
    const spans = receiver.spans().filter((span) => span.traceId === id)
    for (const last of ['request', 'end'])
      expect(spans.filter(({ name }) => name === `context_cache.${last}`)).toHaveLength(1)
    return spans
  })

/** What a test expects of a span and of those below it. */
interface Tree {
  readonly [name: string]: { readonly attributes: Readonly<Record<string, unknown>>; readonly children: Tree }
}

const treeBelow = (parentSpanId: string, spans: readonly ReceivedSpan[]): Tree =>
  Object.fromEntries(
    spans
      .filter((span) => span.parentSpanId === parentSpanId)
      .map(({ name, spanId, attributes: given }) => [
        name.replace('context_cache.', ''),
        { attributes: given, children: treeBelow(spanId, spans) },
      ]),
  )

describe('traces of a gateway with an endpoint', () => {
  // Envoy reports ends of turns to either.
  const stack = useStack({
    store: 'redis',
    gateways: 2,
    pods: embeddedPods({ count: 1 }),
    env: {
      ...on,
      ...printsModules,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-key',
      OTEL_SERVICE_NAME: 'my-gateway',
      OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=gateway-0',
    },
  })
  const secrets: string[] = ['test-key', 'word1', 'my-conversation']
  const headers = traceparentOf('01')

  test('a create and a turn have spans below that of their caller, with what happened', async () => {
    const id = await createdId(stack, { headers })
    secrets.push(id, id.slice(4))
    const { digest } = await untilStored(stack, id, 1)
    const second = 'a'.repeat(32)
    await use(stack, id, { headers: traceparentOf('01', second) })
    await untilStored(stack, id, 2)

    const pod = stack.pods[0]?.address
    const usage = {
      'gen_ai.request.model': model,
      'gen_ai.usage.input_tokens': expect.any(Number),
      'gen_ai.usage.output_tokens': 2,
      'context_cache.session': digest,
      'context_cache.pool': 'default',
      'context_cache.pod': pod,
      'context_cache.outcome': 'completed',
      'http.response.status_code': 200,
    }
    const offload = {
      attributes: {
        'context_cache.result': 'stored',
        'context_cache.bytes': expect.any(Number),
        'context_cache.pod': pod,
      },
      children: {},
    }
    const route = { attributes: { 'context_cache.result': 'routed', 'context_cache.policy': 'predicted-ttft' } }
    expect(treeBelow(callerSpan, await traceOf(traceId))).toMatchObject({
      request: {
        attributes: {
          'context_cache.route': 'create',
          'context_cache.outcome': 'forwarded',
          'context_cache.status': 'miss; reason=new_session',
          'context_cache.session': digest,
          'gen_ai.operation.name': 'text_completion',
          'gen_ai.request.model': model,
        },
        children: {
          lookup: { attributes: { 'context_cache.result': 'created' } },
          route,
          load: { attributes: { 'context_cache.result': 'miss', 'context_cache.reason': 'nothing_stored' } },
          end: { attributes: usage, children: { offload } },
        },
      },
    })
    expect(treeBelow(callerSpan, await traceOf(second))).toMatchObject({
      request: {
        attributes: {
          'context_cache.route': 'completions',
          'context_cache.status': expect.stringMatching(/^hit; tier=gpu/),
        },
        children: {
          lookup: { attributes: { 'context_cache.result': 'active' } },
          route,
          load: { attributes: { 'context_cache.result': 'hit', 'context_cache.tier': 'gpu' } },
          end: {
            attributes: { ...usage, 'gen_ai.usage.cache_read.input_tokens': expect.any(Number) },
            children: { offload },
          },
        },
      },
    })
  })

  test('a turn by a name, and errors, are followed; a request without a trace begins one', async () => {
    await call(`${stack.url}/v1/completions`, {
      headers: { 'x-session-affinity': 'my-conversation' },
      body: { model, prompt: prompt(20), max_tokens: 2 },
    })
    await call(`${stack.url}/v1/context`, { headers: { ...headers, 'x-session-ttl': 'soon' }, body: { model } })

    const named = await eventually(() => {
      const span = receiver.spans().find(({ attributes: given }) => given['context_cache.named_by'] !== undefined)
      expect(span).toMatchObject({ attributes: { 'context_cache.status': 'miss; reason=new_session' } })
      expect(span?.parentSpanId).toBeUndefined()
      return span
    })
    const spans = await traceOf(named?.traceId ?? '')
    expect(Object.keys(treeBelow(named?.spanId ?? '', spans)).sort()).toEqual(['end', 'load', 'lookup', 'route'])
    await eventually(() =>
      expect(receiver.spans()).toContainEqual(
        expect.objectContaining({
          traceId,
          status: { code: 2 },
          attributes: {
            'context_cache.route': 'create',
            'context_cache.outcome': 'rejected',
            'error.type': 'invalid_ttl',
          },
        }),
      ),
    )
  })

  test('nothing is exported but the attributes of docs/traces.md, and no secret', () => {
    const known: Readonly<Record<string, { readonly spans: readonly string[] }>> = attributes
    for (const { name, attributes: given } of receiver.spans())
      for (const attribute of Object.keys(given))
        expect([attribute, known[attribute]?.spans]).toEqual([
          attribute,
          expect.arrayContaining([name.replace('context_cache.', '')]),
        ])
    expect(receiver.resources()[0]).toMatchObject({ 'service.name': 'my-gateway', 'k8s.pod.name': 'gateway-0' })
    const exported = receiver.received().join('\n')
    expect(exported).toMatch(/^\/v1\/traces .*"authorization":"Bearer collector-key"/)
    for (const secret of secrets) expect(exported).not.toContain(secret)
    expect(stack.output()).not.toContain('collector-key')
    expect(stack.output()).toMatch(/^loaded \S*@opentelemetry\/sdk-trace/m)
    expect(stack.output()).toMatch(/^loaded \S*src\/tracing/m)
  })
})

describe('a gateway', () => {
  const { stack, pod } = useScriptedStack({ env: printsModules })
  const restart = async (env: Readonly<Record<string, string>>): Promise<void> => {
    await stack.gateway().child.stop()
    await stack.restartGateway(0, env)
  }
  /** A create and two turns, and the contexts with which the pod got them. */
  const sendAll = async (ofCreate: Record<string, string>) => {
    const id = await eventually(() => createdId(stack, { headers: ofCreate }))
    await untilTurns(stack, id, 1)
    await use(stack, id, { headers: traceparentOf('00') })
    await untilTurns(stack, id, 2)
    await use(stack, id)
    await untilTurns(stack, id, 3)
    return pod
      .requests()
      .slice(-3)
      .map(({ headers: { traceparent, tracestate } }) => ({ traceparent, tracestate }))
  }

  test('without an endpoint loads no module of OpenTelemetry, and the pod gets the context of the caller', async () => {
    expect(await sendAll(traceparentOf('01'))).toEqual([traceparentOf('01'), traceparentOf('00'), {}])

    // The library of the metrics loads the interface, without an implementation.
    const loaded = [...stack.output().matchAll(/loaded \S*@opentelemetry\/([\w-]+)/g)].map(([, name]) => name)
    expect(loaded.filter((name) => name !== 'api')).toEqual([])
    expect(stack.output()).not.toMatch(/loaded \S*src\/tracing/)
  })

  test('with an endpoint puts its span into the context where the caller traces', async () => {
    await restart({ ...on, OTEL_TRACES_SAMPLER_ARG: '0' })
    const ofOthers = 'b'.repeat(32)
    const state = { tracestate: 'vendor=opaque' }
    const contexts = await sendAll({ ...traceparentOf('01', ofOthers), ...state })

    const spans = await traceOf(ofOthers)
    const span = spans.find(({ name }) => name === 'context_cache.request')
    expect(span).toMatchObject({ parentSpanId: callerSpan })
    const own = { traceparent: `00-${ofOthers}-${span?.spanId}-01`, ...state }
    expect(contexts).toEqual([own, traceparentOf('00'), {}])
  })

  test('whose receiver is away takes turns, logs it once a minute, and stops in time', async () => {
    await restart({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/spans' })
    await sendAll(traceparentOf('01'))
    await eventually(() => expect(stack.output()).toContain('traces could not be exported'))
    await sendAll(traceparentOf('01'))

    await stack.gateway().child.stop()
    expect(stack.output().split('traces could not be exported')).toHaveLength(2)
    expect(stack.output().split('"msg":"stopped"')).toHaveLength(4)
  })
})
