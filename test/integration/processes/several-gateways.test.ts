import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Stack, startStack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack({ store: 'redis', gateways: 2 })
}, 120_000)

afterAll(() => stack?.stop())

const create = async (prompt: string): Promise<string> => {
  const answer = await call(`${stack.url}/v1/context`, { body: { model, prompt, max_tokens: 4 } })
  expect(answer.status).toBe(200)
  return answer.headers.get('x-session-id') ?? ''
}

const use = (id: string, prompt: string, headers: Record<string, string> = {}) =>
  call(`${stack.url}/v1/completions`, {
    headers: { 'x-session-id': id, ...headers },
    body: { model, prompt, max_tokens: 4 },
  })

const whenStored = (id: string, turns: number) =>
  eventually(async () => {
    const { body } = await call(`${stack.url}/v1/context/${id}`)
    expect(body).toMatchObject({ turns, kv: { stored: { turn: turns } } })
  })

const forwardedBy = async (index: number): Promise<number> => {
  const metrics = await call(`${stack.gateway(index).adminUrl}/metrics`)
  const counts = [...metrics.text.matchAll(/^context_cache_requests_total\{.*outcome="forwarded".*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

test('two gateways behind one Envoy serve the same sessions', async () => {
  const text = 'A conversation that both gateways know, and that each of them can go on with. '
  const id = await create(text)
  await whenStored(id, 1)
  for (let turn = 2; turn <= 9; turn += 1) {
    const answer = await use(
      id,
      `${text}${'And more. '.repeat(turn)}`,
      turn % 2 === 0 ? {} : { 'routing-strategy': 'round-robin' },
    )
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-context-cache')).toMatch(/^hit; /)
    await whenStored(id, turn)
  }
  // Envoy chooses by chance between gateways that have as little to do.
  await eventually(async () => {
    expect((await use(id, text)).status).toBe(200)
    expect(await forwardedBy(0)).toBeGreaterThan(0)
    expect(await forwardedBy(1)).toBeGreaterThan(0)
  })
}, 60_000)

test('sessions survive the end of one gateway and of both', async () => {
  const text = 'A conversation that outlives the gateways that it began with. '
  const id = await create(text)
  await whenStored(id, 1)
  for (const index of [0, 1]) {
    await stack.gateway(index).child.kill()
    const answer = await eventually(async () => {
      const tried = await use(id, `${text}Go on without gateway ${index}. `)
      expect(tried.headers.get('x-context-cache')).toMatch(/^hit; /)
      return tried
    })
    expect(answer.status).toBe(200)
    await stack.restartGateway(index)
  }
  await stack.gateway(0).child.stop()
  await stack.gateway(1).child.stop()
  await stack.restartGateway(0)
  await stack.restartGateway(1)
  await eventually(async () => {
    const answer = await use(id, `${text}Both are new now. `)
    expect(answer.headers.get('x-session-id')).toBe(id)
    expect(answer.headers.get('x-context-cache')).toMatch(/^hit; /)
  })
}, 90_000)

test('gateway that drains loses no turn and no create', async () => {
  const text = 'A conversation that goes on while its gateways are replaced. '
  const unserved: string[] = []
  let isRolling = true
  const converse = async (client: number): Promise<void> => {
    let id = await create(`${text}${client} `)
    for (let turn = 1; isRolling; turn += 1) {
      const answer = turn % 4 === 0 ? undefined : await use(id, `${text}${client} ${turn} `)
      if (answer === undefined) id = await create(`${text}${client} ${turn} `)
      // A turn without the header bypassed the gateways.
      else if (answer.headers.get('x-session-id') !== id) unserved.push(`${answer.status} ${answer.text}`)
    }
  }
  const clients = Array.from({ length: 6 }, (_, client) => converse(client))
  for (const index of [0, 1]) {
    const before = await forwardedBy(1 - index)
    await stack.gateway(index).child.stop()
    await eventually(async () => expect(await forwardedBy(1 - index)).toBeGreaterThan(before + 5))
    await stack.restartGateway(index)
    await eventually(async () => expect(await forwardedBy(index)).toBeGreaterThan(5))
  }
  isRolling = false
  await Promise.all(clients)
  expect(unserved).toEqual([])
}, 90_000)
