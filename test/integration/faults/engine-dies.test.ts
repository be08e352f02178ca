import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { startEngine } from '../../../playground/start-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { isReady } from '../support/metrics.ts'
import { cacheLine, createdId, prompt, untilStored, untilTurns, use, view } from '../support/sessions.ts'
import type { StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

let pods: StackPod[] = []

const launch = async (kvDirectory: string, port?: number): Promise<StackPod> =>
  startEngine({
    name: 'pod',
    kvDirectory,
    port,
    slots: 2,
    contextTokensPerSlot: 4096,
    extraArguments: ['--log-level', 'warn'],
  })

const stack = useStack({
  pods: async (kvDirectory) => {
    pods = await Promise.all([launch(kvDirectory), launch(kvDirectory)])
    return pods
  },
  env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100' },
})
beforeEach(async () => {
  pods = await Promise.all(pods.map(async (pod) => (pod.child?.isRunning() === true ? pod : revive(pod))))
  await eventually(() => pods.every(({ address }) => isReady(stack, address)))
})
afterAll(() => Promise.all(pods.map(async ({ child }) => child?.stop())))

/** Starts the engine of a pod anew, under its old address and with nothing in its slots. */
const revive = (pod: StackPod): Promise<StackPod> => launch(stack.kvDirectory, Number(pod.address.split(':')[1]))

const podOf = async (id: string): Promise<StackPod> => {
  const { pod } = (await view(stack, id)).kv
  const found = pods.find(({ address }) => address === pod)
  if (found === undefined) throw new Error(`no pod ${pod}`)
  return found
}

const isBusy = async ({ address }: StackPod): Promise<boolean> => {
  const { body } = await call(`http://${address}/slots`)
  return (body as { is_processing: boolean }[]).some((slot) => slot.is_processing)
}

const shortBody = { model, prompt: prompt(15), max_tokens: 2 }
/** Takes the engine a while. */
const long = prompt(400)
const longBody = { model, prompt: long, max_tokens: 2 }

const storedSession = async (): Promise<string> => {
  const id = await createdId(stack, { body: shortBody })
  await untilStored(stack, id, 1)
  return id
}

test('engine that dies during a prompt: the other pod responds, and keeps the session', async () => {
  const id = await storedSession()
  const home = await podOf(id)

  const turn = use(stack, id, { body: longBody })
  await eventually(() => isBusy(home))
  await home.child?.kill()
  const answer = await turn

  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-session-id')).toBe(id)
  const seen = await untilTurns(stack, id, 2)
  expect(seen.kv.pod).not.toBe(home.address)
  // The other pod had no slot for the turn, so what is stored is the turn before.
  expect(seen.kv.stored).toMatchObject({ turn: 1 })
  const next = await use(stack, id, { body: { ...shortBody, prompt: prompt(18) } })
  expect(cacheLine(next)).toMatch(/^hit; tier=store; /)
  expect((await untilStored(stack, id, 3)).kv.pod).not.toBe(home.address)
})

test('an engine that was started anew is used again, and nothing that it held is relied on', async () => {
  const id = await storedSession()
  const home = await podOf(id)

  await home.child?.kill()
  await eventually(() => !isReady(stack, home.address))
  const revived = await revive(home)
  pods = pods.map((pod) => (pod === home ? revived : pod))
  await eventually(() => isReady(stack, revived.address))
  const answer = await use(stack, id, { body: { ...shortBody, prompt: prompt(18) } })

  expect(answer.status).toBe(200)
  expect(cacheLine(answer)).toMatch(/^hit; tier=store; /)
  expect((await untilStored(stack, id, 2)).kv.pod).toBe(home.address)
})

test('an engine that dies while it streams ends the stream, and the session goes on from its last turn', async () => {
  const id = await storedSession()
  const home = await podOf(id)

  const body = { model, prompt: prompt(18), max_tokens: 2000, stream: true }
  const response = await post(`${stack.url}/v1/completions`, body, { headers: { 'x-session-id': id } })
  const reader = response.body?.getReader()
  await reader?.read()
  await home.child?.kill()
  const read = async (): Promise<void> => {
    while ((await reader?.read())?.done === false);
  }
  await expect(read()).rejects.toThrow()

  const next = await use(stack, id, { body: { ...shortBody, prompt: prompt(18) } })
  expect(next.status).toBe(200)
  expect(cacheLine(next)).toMatch(/^hit; tier=store; /)
  expect(await untilStored(stack, id, 2)).toMatchObject({ turns: 2 })
})
