import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { envoyStat, metric } from '../support/metrics.ts'
import { useScriptedStack } from '../support/use-stack.ts'
import { ask, cacheHeader, numberedResponses, question } from './support.ts'

/** A stack for a suite, whose pod numbers its responses. */
const useNumberedResponses = (options: Parameters<typeof useScriptedStack>[0] = {}) => {
  const scripted = useScriptedStack(options)
  beforeAll(() => scripted.pod.otherwise(numberedResponses()))
  return scripted
}

const { pod, stack } = useNumberedResponses()

/** Starts the gateway again with these options, and waits until Envoy asks it. */
const restart = async (env: Readonly<Record<string, string>>): Promise<void> => {
  await stack.gateway().child.stop()
  await stack.restartGateway(0, env)
  await eventually(async () => expect((await call(`${stack.url}/v1/context`)).status).toBe(200))
}

test.each([
  ['the size defaults to zero, and the cache is off', { CTX_RESPONSE_CACHE_MODELS: 'scripted' }],
  ['no model uses it by default, even if it has a size', { CTX_RESPONSE_CACHE_MAX_BYTES: '1000000' }],
])('%s: every request is computed, and its answer never crosses to the gateway', async (_name, env) => {
  await restart(env)
  const requests = pod.requests().length
  const resets = await envoyStat(stack, 'cluster.gateway.upstream_rq_tx_reset')

  const responses = [await ask(stack), await ask(stack), await ask(stack, { body: { ...question, stream: true } })]
  expect(responses.map(cacheHeader)).toEqual([null, null, null])
  expect(pod.requests()).toHaveLength(requests + 3)
  const phases = ['request_body', 'response_headers', 'response_body']
  const counts = phases.map((phase) => metric(stack, 'ext_proc_message_duration_seconds_count', { phase }))
  expect(await Promise.all(counts)).toEqual([0, 0, 0])
  expect(await envoyStat(stack, 'cluster.gateway.upstream_rq_tx_reset')).toBe(resets)
  expect(await metric(stack, 'response_cache_lookups_total')).toBe(0)
})

describe('with a size and two models', () => {
  const sized = {
    CTX_RESPONSE_CACHE_MODELS: 'scripted,other',
    CTX_RESPONSE_CACHE_MAX_BYTES: '10000',
    CTX_RESPONSE_CACHE_MAX_ENTRY_BYTES: '5000',
  }
  beforeAll(() => restart(sized))

  const lookUps = () =>
    Promise.all(['hit', 'miss'].map((result) => metric(stack, 'response_cache_lookups_total', { result })))

  let seed = 0
  /** A request that no other test sends. */
  const fresh = (part: object = {}): object => {
    seed += 1
    return { ...question, seed, ...part }
  }

  test('a request that was computed before is answered without the model', async () => {
    const body = fresh()
    const first = await ask(stack, { body })
    const requests = pod.requests().length
    const [hits = 0, misses = 0] = await lookUps()
    const second = await ask(stack, { body })
    expect(await lookUps()).toEqual([hits + 1, misses])
    expect([cacheHeader(first), cacheHeader(second)]).toEqual(['miss', 'hit'])
    expect(second.text).toBe(first.text)
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(pod.requests()).toHaveLength(requests)
  })

  test('a computed answer and its request are the same as without the cache', async () => {
    const body = fresh()
    const cached = await ask(stack, { body })
    const plain = await ask(stack, { body, headers: { 'x-response-cache': 'off' } })
    const { date: _date, 'x-response-cache': mark, ...headers } = Object.fromEntries(cached.headers)
    expect(mark).toBe('miss')
    expect(Object.keys(headers).sort()).toEqual([...plain.headers.keys()].filter((name) => name !== 'date').sort())
    expect(headers['content-length']).toBe(plain.headers.get('content-length'))
    const [first, second] = pod.requests().slice(-2)
    expect(first?.body).toBe(second?.body)
    expect(Object.keys(first?.headers ?? {})).toEqual(Object.keys(second?.headers ?? {}))
  })

  test('the log holds nothing of a prompt', async () => {
    const body = fresh({ messages: [{ role: 'user', content: 'a very private matter' }] })
    await ask(stack, { body })
    await ask(stack, { body })
    expect(stack.output()).not.toContain('private')
  })

  test('requests are computed and unmarked while the gateway is down, and it starts with an empty cache', async () => {
    const body = fresh()
    await ask(stack, { body })
    await stack.gateway().child.kill()
    const response = await ask(stack, { body })
    expect([response.status, cacheHeader(response)]).toEqual([200, null])
    await stack.restartGateway(0, sized)
    await eventually(async () => expect(cacheHeader(await ask(stack, { body: fresh() }))).toBe('miss'))
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })
})

describe('switched on for everybody, as the documentation says', () => {
  const page = readFileSync(new URL('../../../docs/response-cache.md', import.meta.url), 'utf8')
  const [, lines = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
  const { stack } = useNumberedResponses({
    env: { CTX_RESPONSE_CACHE_MODELS: 'scripted', CTX_RESPONSE_CACHE_MAX_BYTES: '100000' },
    envoyConfig: (text) =>
      text.replace(/^( *)mutations:$/m, (line, indent: string) => {
        const added = lines.trimEnd().split('\n')
        return [line, ...added.map((one) => `${indent}  ${one}`)].join('\n')
      }),
  })

  test('requests need not ask for it, and may still refuse it', async () => {
    const url = `${stack.url}/v1/chat/completions`
    const responses = [await call(url, { body: question }), await call(url, { body: question })]
    expect(responses.map(cacheHeader)).toEqual(['miss', 'hit'])
    expect(cacheHeader(await ask(stack, { headers: { 'x-response-cache': 'off' } }))).toBeNull()
  })
})
