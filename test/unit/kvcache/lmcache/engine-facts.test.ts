import { setTimeout } from 'node:timers/promises'
import { beforeEach, expect, test } from '@jest/globals'
import type { EngineHttp } from '../../../../src/engines/engine-http.ts'
import { createEngineFacts } from '../../../../src/kvcache/lmcache/engine-facts.ts'
import { eventually } from '../../../support/eventually.ts'
import { createLatch } from '../../../support/latch.ts'

const pod = '127.0.0.1:8000'
const { signal } = new AbortController()
const models = JSON.stringify({ data: [{ id: 'base' }, { id: 'adapter', parent: 'base' }] })
const ageMs = 1

let version: string
let asked: number
let held: Promise<void> | undefined
const http: EngineHttp = {
  call: async ({ path }) => {
    if (path === '/v1/models') return { kind: 'answered', status: 200, text: models }
    if (path !== '/version') return { kind: 'answered', status: 404, text: '' }
    asked += 1
    await held
    return { kind: 'answered', status: 200, text: JSON.stringify({ version }) }
  },
  close: async () => {},
}

let facts: ReturnType<typeof createEngineFacts>
const fingerprintOf = async (model: string): Promise<string> => (await facts.of(pod, model, signal)).fingerprint

/** Asks for the model, lets another version run, and waits until the answer is old. */
const replaced = async (model: string): Promise<string> => {
  const first = await fingerprintOf(model)
  const untilMs = performance.now() + 2 * ageMs
  version = '2'
  await eventually(() => performance.now() > untilMs)
  return first
}

beforeEach(() => {
  version = '1'
  asked = 0
  held = undefined
  facts = createEngineFacts(http, 1_000, { ageMs })
})

test('an old answer counts while the engine is asked again', async () => {
  const first = await replaced('base')
  const latch = createLatch()
  held = latch.opened

  expect(await fingerprintOf('base')).toBe(first)
  expect(asked).toBe(2)
  latch.open()
  await eventually(async () => expect(await fingerprintOf('base')).not.toBe(first))
})

test('an old answer counts while the engine does not answer', async () => {
  const first = await replaced('base')
  held = Promise.reject(new Error('away'))

  for (const tries of [1, 2, 3]) {
    expect(await fingerprintOf('base')).toBe(first)
    await eventually(() => asked === 1 + tries)
    await setTimeout(2 * ageMs)
  }
  await expect(facts.renew(pod, signal)).rejects.toThrow('away')
  await expect(fingerprintOf('base')).rejects.toThrow('away')
})

test.each([
  { name: 'an adapter', model: 'adapter', act: async () => {} },
  { name: 'a pod that became ready', model: 'base', act: () => facts.renew(pod, signal) },
  { name: 'a pod that is asked anew', model: 'base', act: async () => void facts.renew(pod, signal) },
])('no old answer counts for $name', async ({ model, act }) => {
  const first = await replaced(model)
  await act()

  expect(await fingerprintOf(model)).not.toBe(first)
})

test('a turn that waits for an answer gets it when its pod is asked anew', async () => {
  const waiting = fingerprintOf('base')
  await facts.renew(pod, signal)
  expect(await waiting).toBe(await fingerprintOf('base'))
})

test('KV belongs to one version of the weights', async () => {
  const of = (modelVersion?: string) => createEngineFacts(http, 1_000, { modelVersion }).of(pod, 'base', signal)
  const known = await Promise.all([of('1'), of('2'), of('1'), of()])
  expect(new Set(known.map(({ fingerprint }) => fingerprint)).size).toBe(3)
})
