import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { metric, readMetric } from '../support/metrics.ts'
import { create, prompt, untilStored, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({ store: 'redis' })

const line = z.looseObject({ level: z.string(), msg: z.string(), session: z.string().optional() })
/** What the gateway has logged, from this level on. */
const logged = (...levels: readonly string[]) =>
  stack
    .output()
    .split('\n')
    .filter((text) => text.startsWith('{'))
    .map((text) => line.parse(JSON.parse(text)))
    .filter(({ level }) => levels.includes(level))
const warningsOf = (subject: string) => logged('warn', 'info').filter(({ msg }) => msg.startsWith(subject))
const readiness = async () => await call(`${stack.gateway().adminUrl}/readyz`)

describe('what an operator sees', () => {
  const body = { model, prompt: prompt(20), max_tokens: 2 }

  test('a turn is one line with the digest of its session, and nothing of the request', async () => {
    const created = await create(stack, { body })
    const id = created.headers.get('x-session-id') ?? ''
    await untilStored(stack, id, 1)
    await use(stack, id, { body })
    const { digest, kv } = await untilStored(stack, id, 2)
    const turns = () => logged('debug').filter(({ msg, session }) => msg === 'turn' && session === digest)
    const known = { pod: kv.pod, outcome: 'completed', status: 200, ttfbMs: expect.any(Number), offload: 'stored' }
    await eventually(() =>
      expect(turns()).toMatchObject([
        { ...known, cacheStatus: 'miss; reason=new_session', cachedTokens: 0, preparedMs: expect.any(Number) },
        { ...known, cacheStatus: expect.stringMatching(/^hit; tier=gpu/), offloadMs: expect.any(Number) },
      ]),
    )
    for (const secret of [id.slice(4), 'word1', 'test-key']) expect(stack.output()).not.toContain(secret)
  })

  test('metrics report pods, models, tokens, and TTFT with and without a hit', async () => {
    const tokens = await metric(stack, 'output_tokens_total', { model })
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
    const created = await post(`${stack.url}/v1/context`, streamed)
    await created.text()
    const id = created.headers.get('x-session-id') ?? ''
    const { pod } = (await untilStored(stack, id, 1)).kv
    await (await post(`${stack.url}/v1/completions`, streamed, { headers: { 'x-session-id': id } })).text()
    await untilStored(stack, id, 2)
    await eventually(async () => expect(await metric(stack, 'output_tokens_total', { model })).toBe(tokens + 4))
    expect(await readMetric(stack, 'ttft_seconds_count')).toEqual({
      [`cache="miss",model="${model}"`]: 1,
      [`cache="hit",model="${model}"`]: 1,
    })
    const addresses = stack.pods.map(({ address }) => `pool="default",pod="${address}"`).sort()
    for (const name of ['pod_ready', 'pod_turns_in_flight', 'pod_sessions'])
      expect(Object.keys(await readMetric(stack, name)).sort()).toEqual(addresses)
    expect(await metric(stack, 'pod_ready')).toBe(2)
    expect(await metric(stack, 'pod_sessions', { pod: pod ?? '' })).toBeGreaterThan(0)
  })

  test.each([
    {
      name: 'an engine',
      subject: () => `The engine ${stack.pods[1]?.address}`,
      stop: () => stack.pods[1]?.child?.kill(),
      restart: undefined,
      seen: { kind: 'engine_unavailable' },
    },
    {
      name: 'Redis',
      subject: () => 'The session store',
      stop: () => stack.redis?.child.kill(),
      restart: () => stack.restartRedis(),
      seen: { kind: 'store_unavailable' },
    },
  ])('$name that goes is one warning with its cause, and /readyz names it and stays 200', async (row) => {
    await row.stop()
    await eventually(async () => {
      const warnings = [expect.objectContaining({ ...row.seen, text: expect.stringContaining('unavailable: ') })]
      expect((await readiness()).body).toMatchObject({ degraded: true, warnings: expect.arrayContaining(warnings) })
    })
    // Many faults, of sweeps and turns.
    for (let turn = 0; turn < 10; turn += 1) await use(stack, `ctx_${'u'.repeat(32)}`)
    expect((await readiness()).status).toBe(200)
    await row.restart?.()
    const back = row.restart === undefined ? [] : [`${row.subject()} is available again`]
    await eventually(() =>
      expect(warningsOf(row.subject()).map(({ msg }) => msg)).toEqual([
        expect.stringMatching(/is unavailable: .*\w/),
        ...back,
      ]),
    )
    expect(await metric(stack, 'warnings', row.seen)).toBe(row.restart === undefined ? 1 : 0)
  })

  test('no warning carries a stack more than once a minute', () => {
    const stacks = logged('warn', 'error').filter((entry) => entry['err'] !== undefined)
    const kinds = new Set(stacks.map((entry) => JSON.stringify({ ...entry, err: '', time: '' })))
    expect(stacks).toHaveLength(kinds.size)
  })
})
