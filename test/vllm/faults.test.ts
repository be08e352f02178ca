import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { orderServer } from './support/control.ts'
import { vllmFleet } from './support/fleet.ts'
import { freshPrompt, freshSalt } from './support/prompts.ts'
import { newSalts, nothing, piecesOf } from './support/salts.ts'
import { anywhere, moveToOtherPod, type SessionClient, sessionClient } from './support/session.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(300_000)

const stack = useVllmStack()
let client: SessionClient
let id: string
let prompt: string

beforeEach(async () => {
  client = sessionClient(stack())
  prompt = freshPrompt(450)
  ;({ id } = await client.create(prompt))
  await client.settled(id, 1)
})
afterEach(async () => {
  await client.remove(id)
})

/** Waits until a session can be stored and loaded again. */
const untilItWorks = (through: SessionClient = client): Promise<unknown> =>
  eventually(
    async () => {
      const { id: probe } = await through.create(freshPrompt(200))
      const { kv } = await through.settled(probe, 1)
      await through.remove(probe)
      return kv.stored !== null
    },
    { timeoutMs: 120_000 },
  )

test.each([
  { name: 'dead', bring: 'kill', end: 'restart' },
  { name: 'frozen', bring: 'pause', end: 'resume' },
] as const)(
  'while the coordinator is $name, every turn is answered, and later ones without a call to it',
  async ({ bring, end }) => {
    const prompts = Array.from({ length: 5 }, () => freshPrompt(200))
    const sessions: string[] = []
    for (const text of prompts) {
      const created = await client.create(text)
      await client.settled(created.id, 1)
      sessions.push(created.id)
    }
    await orderServer('coordinator', bring)
    try {
      const lines: string[] = []
      // Each session is sent once to the pod that does not hold it.
      for (const [index, session] of sessions.entries()) {
        for (const more of ['', ' more']) {
          const turn = await client.use(session, `${prompts[index]}${more}`, { headers: anywhere })
          lines.push(turn.cache)
        }
      }
      const fresh = await client.create(freshPrompt(200))

      const expected = /^hit; tier=gpu; |^miss; reason=(load_timeout|load_failed|kv_store_unavailable)$/
      expect(lines.filter((line) => !expected.test(line))).toEqual([])
      expect(lines).toContain('miss; reason=kv_store_unavailable')
      expect(fresh.cache).toBe('miss; reason=new_session')
      await client.remove(fresh.id)
    } finally {
      await orderServer('coordinator', end)
    }
    await untilItWorks()
    for (const session of sessions) await client.remove(session)
  },
)

test('while the other pod and its LMCache server are dead, turns are answered; deletions complete later', async () => {
  let session = ''
  const own = sessionClient(stack(), freshSalt())
  const text = freshPrompt(450)
  const [salt = ''] = await newSalts(async () => {
    const created = await own.create(text)
    await own.settled(created.id, 1)
    session = created.id
  })
  const { kv } = await own.view(session)
  const pod = vllmFleet().pods.findIndex(({ address }) => address !== kv.pod)
  await orderServer(`vllm-${pod}`, 'kill')
  await orderServer(`lmcache-${pod}`, 'kill')
  try {
    const turn = await own.use(session, `${text} more`)
    await own.remove(session)

    expect(turn.cache).toMatch(/^hit; tier=gpu; /)
  } finally {
    // One after the other: vLLM would wait for minutes for a server that it has lost.
    await orderServer(`lmcache-${pod}`, 'restart')
    await orderServer(`vllm-${pod}`, 'restart')
  }
  await eventually(async () => expect(await piecesOf(salt)).toEqual(nothing), { timeoutMs: 120_000 })
  await untilItWorks()
})

test('metrics, logs and the configuration page contain neither prompt nor session id', async () => {
  await moveToOtherPod(client, { id, prompt })
  const admin = stack().gateway().adminUrl
  const pages = await Promise.all(['/metrics', '/config'].map((path) => call(`${admin}${path}`)))

  const seen = [stack().output(), ...pages.map(({ text }) => text)].join('\n')
  expect(seen).not.toContain(prompt.slice(0, 40))
  expect(seen).not.toContain(id)
})
