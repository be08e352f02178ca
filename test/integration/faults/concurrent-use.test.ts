import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import { embeddedPods, type Stack, startStack } from '../support/stack.ts'
import { cacheLine, createdId, podChanges, prompt, untilStored, use, view } from './support.ts'

const parallelTurns = 50

let stack: Stack

beforeAll(async () => {
  stack = await startStack({
    store: 'redis',
    pods: embeddedPods({ slots: 1, arguments: ['--log-level', 'info'] }),
    // A load may take as long as it does on a busy machine. Turns of few tokens leave this estimate as it is.
    env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100', CTX_KV_PREFILL_MS_PER_TOKEN: '1000' },
  })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
})

/** The loads that the engines have carried out. */
const restores = (): readonly string[] =>
  stack.pods.flatMap(({ child }) => child?.output().filter((line) => line.includes('"action":"restore"')) ?? [])

const body = { model: 'tiny-random', prompt: prompt(15), max_tokens: 2 }

/** Every pod serves somebody else before. */
const fillAllPods = async (): Promise<void> => {
  const filled = new Set<string | null>()
  await eventually(async () => {
    const seen = await untilStored(
      stack,
      await createdId(stack, { body, headers: { 'routing-strategy': 'random' } }),
      1,
    )
    expect(filled.add(seen.kv.pod).size).toBe(stack.pods.length)
  })
}

test('fifty parallel turns of one session share one load, and none is lost', async () => {
  const id = await createdId(stack, { body })
  const created = await untilStored(stack, id, 1)
  await fillAllPods()
  const home = stack.pods.find(({ address }) => address === created.kv.pod)
  await home?.child?.kill()
  await eventually(() => expect(podChanges(stack, 'failing', created.kv.pod ?? '')).toBe(1))
  const files = await stack.kvFiles()

  const answers = await Promise.all(Array.from({ length: parallelTurns }, () => use(stack, id, { body })))

  expect(new Set(answers.map(({ status, text }) => (status === 200 ? 200 : text)))).toEqual(new Set([200]))
  expect(answers.map(cacheLine).filter((line) => !line?.startsWith('hit; '))).toEqual([])
  const after = await untilStored(stack, id, 1 + parallelTurns)
  expect(after).toMatchObject({ turns: 1 + parallelTurns, ttl: created.ttl, expires_at: created.expires_at })
  expect(restores()).toHaveLength(1)
  await eventually(async () => expect(await stack.kvFiles()).toHaveLength(files.length))
}, 60_000)

test('parallel turns that set the TTL leave the last one in force', async () => {
  const id = await createdId(stack, { body })

  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      use(stack, id, { body, headers: { 'x-session-ttl': String(1000 + index) } }),
    ),
  )

  expect(new Set(answers.map(({ headers }) => headers.get('x-session-ttl')))).toEqual(
    new Set(Array.from({ length: 10 }, (_, index) => String(1000 + index))),
  )
  const seen = await eventually(async () => {
    const now = await view(stack, id)
    expect(now.turns).toBe(11)
    return now
  })
  expect(seen.ttl).toBeGreaterThanOrEqual(1000)
})
