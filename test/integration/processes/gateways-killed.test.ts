import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { envoyStat } from '../support/metrics.ts'
import { cacheLine, prompt, remove, storedSession, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const clients = 3
const kills = 12

const stack = useStack({
  store: 'redis',
  gateways: 2,
  pods: embeddedPods({ slots: 4 }),
  env: { CTX_KV_CALL_TIMEOUT_MS: '900', CTX_REAPER_ANNOUNCE_GRACE_MS: '1000', CTX_REAPER_REMOVAL_LEASE_MS: '1000' },
})

interface Seen {
  turns: number
  readonly failures: string[]
}

/** A create may meet a gateway that dies with its body; the client then tries again with its key, as SDKs do. */
const createSafely = async (text: string, key: string): Promise<string> =>
  eventually(async () => {
    const created = await call(`${stack.url}/v1/context`, {
      headers: { 'idempotency-key': key },
      body: { model, prompt: text, max_tokens: 4 },
    })
    expect(created.status).toBe(200)
    return created.headers.get('x-session-id') ?? ''
  })

const turn = async (id: string, body: object, seen: Seen): Promise<void> => {
  const response = await post(
    `${stack.url}/v1/completions`,
    { model, max_tokens: 4, ...body },
    { headers: { 'x-session-id': id } },
  )
  const text = await response.text()
  seen.turns += 1
  const isWhole = 'stream' in body ? text.trimEnd().endsWith('data: [DONE]') : text.endsWith('}')
  if (response.status !== 200 || !isWhole) seen.failures.push(`${response.status} ${text.slice(-200)}`)
}

const converse = async (client: number, until: AbortSignal, seen: Seen): Promise<void> => {
  for (let round = 0; !until.aborted; round += 1) {
    const text = `client ${client} in round ${round} says ${prompt(30)}`
    const id = await createSafely(text, `${client}-${round}`)
    await turn(id, { prompt: `${text} and more` }, seen)
    await turn(id, { prompt: `${text} and more of it`, stream: true, max_tokens: 16 }, seen)
    // A gateway may die after the deletion and before its response.
    await eventually(async () => expect([200, 404]).toContain((await remove(stack, id)).status))
  }
}

test('two gateways that are killed at random fail no turn, cut no stream and block no slot', async () => {
  const seen: Seen = { turns: 0, failures: [] }
  const ended = new AbortController()
  const conversations = Array.from({ length: clients }, (_, client) => converse(client, ended.signal, seen))
  for (let killed = 0; killed < kills; killed += 1) {
    await delay(Math.random() * 600)
    const index = killed % 2
    await stack.gateway(index).child.kill()
    await stack.restartGateway(index)
    await eventually(async () => expect(await envoyStat(stack, 'cluster.gateway.membership_healthy')).toBe(2))
  }
  ended.abort()
  await Promise.all(conversations)

  expect(seen.failures).toEqual([])
  expect(seen.turns).toBeGreaterThan(kills)
  const body = { model, prompt: `a new session says ${prompt(30)}`, max_tokens: 4 }
  // Sessions that meet the lease of a turn whose gateway was killed store nothing.
  const id = await storedSession(stack, { body })
  expect(cacheLine(await use(stack, id, { body }))).toContain('hit')
  await eventually(async () => expect((await remove(stack, id)).status).toBe(200))
  await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
})
