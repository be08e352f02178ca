import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { podChanges } from '../support/metrics.ts'
import { cacheLine, createdId, prompt, untilStored, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const parallelTurns = 50

const stack = useStack({
  store: 'redis',
  pods: embeddedPods({ slots: 1, arguments: ['--log-level', 'info'] }),
  env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100' },
})

/** The loads that the engines have carried out. */
const restores = (): readonly string[] =>
  stack.pods.flatMap(({ child }) => child?.output().filter((line) => line.includes('"action":"restore"')) ?? [])

const body = { model: 'tiny-random', prompt: prompt(15), max_tokens: 2 }

/** Every pod serves another session before. */
const fillAllPods = async (): Promise<void> => {
  const filled = new Set<string | null>()
  await eventually(async () => {
    const id = await createdId(stack, { body, headers: { 'routing-strategy': 'random' } })
    const seen = await untilStored(stack, id, 1)
    expect(filled.add(seen.kv.pod).size).toBe(stack.pods.length)
  })
}

test('fifty parallel turns of one session load its KV into the slots that they find idle, and none is lost', async () => {
  const id = await createdId(stack, { body })
  const created = await untilStored(stack, id, 1)
  await fillAllPods()
  const home = stack.pods.find(({ address }) => address === created.kv.pod)
  await home?.child?.kill()
  await eventually(() => expect(podChanges(stack, 'failing', created.kv.pod ?? '')).toBe(1))
  const files = await stack.kvFiles()

  const responses = await Promise.all(Array.from({ length: parallelTurns }, () => use(stack, id, { body })))

  expect(new Set(responses.map(({ status, text }) => (status === 200 ? 200 : text)))).toEqual(new Set([200]))
  const lines = responses.map(cacheLine)
  const hits = lines.filter((line) => line?.startsWith('hit; '))
  expect(hits.length).toBeGreaterThanOrEqual(1)
  expect(new Set([...lines, 'miss; reason=no_slot'])).toEqual(new Set([...hits, 'miss; reason=no_slot']))
  const after = await untilTurns(stack, id, 1 + parallelTurns)
  expect(after).toMatchObject({ turns: 1 + parallelTurns, ttl: created.ttl, expires_at: created.expires_at })
  expect(restores().length).toBeLessThanOrEqual(hits.length)
  await eventually(async () => expect(await stack.kvFiles()).toHaveLength(files.length))
})
