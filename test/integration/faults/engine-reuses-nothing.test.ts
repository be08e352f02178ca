import { afterEach, expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { cacheLine, prompt, storedSession, untilStored, use, view } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'
import { type EngineProxy, startEngineProxies } from './engine-proxy.ts'

const proxies: EngineProxy[] = []
const slots = 4
const stack = useStack({
  pods: async (kvDirectory) => {
    proxies.push(...(await startEngineProxies({ count: 1, kvDirectory, slots })))
    return proxies
  },
})
const engine = (): EngineProxy => {
  const [proxy] = proxies
  if (proxy === undefined) throw new Error('the stack is not started yet')
  return proxy
}
let endUntrueAnswers = (): void => {}
afterEach(() => endUntrueAnswers())

/** The engine answers well from now on, and says that it computed each prompt anew. */
const answerUntruly = (): void => {
  endUntrueAnswers = engine().intercept(/^POST \/v1\//, async ({ path, body }, reply) => {
    const answer = await fetch(`${engine().engineUrl}${path}`, { method: 'POST', body })
    const contentType = answer.headers.get('content-type') ?? ''
    const text = (await answer.text()).replaceAll(/"cached_tokens":\d+/g, '"cached_tokens":0')
    reply.response.writeHead(answer.status, { 'content-type': contentType }).end(text)
  })
}

const eraseSlots = () =>
  Promise.all(
    Array.from({ length: slots }, (_, slot) =>
      call(`${engine().engineUrl}/slots/${slot}?action=erase`, { method: 'POST' }),
    ),
  )

const longer = { model, prompt: `${prompt(40)} and more`, max_tokens: 2 }

/** The second turn of a new session, and what its header says. */
const secondTurn = async (
  answered: { readonly isStream: boolean; readonly isMoved: boolean },
  truth: 'told' | 'untold' = 'told',
): Promise<string | null> => {
  const id = await storedSession(stack)
  if (answered.isMoved) await eraseSlots()
  if (truth === 'untold') answerUntruly()
  const body = answered.isStream ? { ...longer, stream: true, stream_options: { include_usage: true } } : longer
  const response = await use(stack, id, { body })
  expect([response.status, response.text]).toEqual([200, expect.stringContaining('cached_tokens')])
  await untilStored(stack, id, 2)
  endUntrueAnswers()
  expect((await view(stack, id)).tokens.cached > 0).toBe(truth === 'told')
  return cacheLine(response)
}

const untrue = 'miss; reason=engine_reuses_nothing'
const readiness = async () => (await call(`${stack.gateway().adminUrl}/readyz`)).body
const warned = () =>
  stack
    .output()
    .split('"level":"warn"')
    .filter((line) => /^[^\n]*"engine_reuses_nothing"/.test(line)).length

const counted = (source: string) => metric(stack, 'hits_not_reused_total', { source, model })
const expectOneWarning = async (source: string, before: { readonly warned: number; readonly counted: number }) => {
  const text = expect.stringMatching(new RegExp(`pool default .*${engine().address} with the model ${model}`))
  expect(await readiness()).toMatchObject({ warnings: [{ kind: 'engine_reuses_nothing', text }] })
  expect(warned()).toBe(before.warned + 1)
  expect(await metric(stack, 'warnings', { kind: 'engine_reuses_nothing' })).toBe(1)
  expect(await counted(source)).toBe(before.counted + 4)
}

test.each([
  { name: 'plain', isStream: false },
  { name: 'streamed', isStream: true },
])('KV in a slot of which the engine reuses nothing is a miss until some is reused: $name', async ({ isStream }) => {
  const how = { isStream, isMoved: false }
  const before = { warned: warned(), counted: await counted('kept') }

  for (let session = 0; session < 3; session += 1) expect(await secondTurn(how, 'untold')).toMatch(/^hit; tier=gpu/)
  expect(await secondTurn(how, 'untold')).toBe(untrue)
  await expectOneWarning('kept', before)

  expect(await secondTurn(how)).toBe(untrue)
  expect(await secondTurn(how)).toMatch(/^hit; tier=gpu/)
  expect(await readiness()).toMatchObject({ warnings: [] })
})

test('restored KV of which the engine reuses nothing is a miss, plain and streamed', async () => {
  for (const isStream of [false, true, false])
    expect(await secondTurn({ isStream, isMoved: true }, 'untold')).toMatch(/^hit; tier=store/)
  expect(await secondTurn({ isStream: false, isMoved: true }, 'untold')).toBe(untrue)
  expect(await secondTurn({ isStream: true, isMoved: true }, 'untold')).toBe(untrue)
})
