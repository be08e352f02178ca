import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, prompt, untilStored, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods, type StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({
  pods: embeddedPods({ slots: 2 }),
  env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100' },
})

const isBusy = async ({ address }: StackPod): Promise<boolean> => {
  const { body } = await call(`http://${address}/slots`)
  return (body as { is_processing: boolean }[]).some((slot) => slot.is_processing)
}

const shortBody = { model, prompt: prompt(15), max_tokens: 2 }
/** Takes the engine a while. */
const longBody = { model, prompt: prompt(400), max_tokens: 2 }

test('engine that dies during a prompt: the other pod responds, and keeps the session', async () => {
  const id = await createdId(stack, { body: shortBody })
  const { kv } = await untilStored(stack, id, 1)
  const home = stack.pods.find(({ address }) => address === kv.pod)
  if (home === undefined) throw new Error(`no pod ${kv.pod}`)

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
