import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { embeddedPods, type Stack, startStack } from '../support/stack.ts'
import { inUse, readMetric } from './support.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack({
    pods: embeddedPods({ count: 2, slots: 2 }),
    env: {
      CTX_ROUTING_POLICY: 'round-robin',
      CTX_ADMISSION_REQUIREMENTS: 'load=disk:1',
      CTX_ADMISSION_GLOBAL_RESOURCES: 'disk',
      CTX_KV_PREFILL_MS_PER_TOKEN: '1000',
    },
  })
}, 120_000)

afterAll(() => stack?.stop())

const body = { model, prompt: 'Where does this run, and for how long?', max_tokens: 1 }

const stored = (id: string, turn: number) =>
  eventually(async () => {
    const view = await call(`${stack.url}/v1/context/${id}`)
    expect(view.body).toMatchObject({ turns: turn, kv: { stored: { turn } } })
  })

test('a load into another pod takes its resources, and frees them at its end', async () => {
  const created = await call(`${stack.url}/v1/context`, { body })
  const id = created.headers.get('x-session-id') ?? ''
  await stored(id, 1)
  const turn = await call(`${stack.url}/v1/completions`, { headers: { 'x-session-id': id }, body })
  expect(turn.headers.get('x-context-cache')).toMatch(/^hit; tier=store; /)
  const waits = await readMetric(stack, 'admission_wait_seconds_count')
  expect(waits).toEqual({ 'kind="load",outcome="admitted"': 1 })
  expect(await inUse(stack)).toBe(0)
})
