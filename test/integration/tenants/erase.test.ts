import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { createdId, look, storedSession, untilStored, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({ store: 'redis' })
const api = () => `${stack.gateway().adminUrl}/api`
const other = { headers: { authorization: 'Bearer other-key' } }

test('an operator sees what a tenant uses, and erases all of it and nothing else', async () => {
  const id = await storedSession(stack)
  await use(stack, id)
  const { kv } = await untilStored(stack, id, 2)
  const others = await createdId(stack, other)
  const { body } = await call(`${api()}/sessions/${id}`)
  const { tenant } = body as { readonly tenant: string }

  const seen = await call(`${api()}/tenants/${tenant}`)
  expect(seen.body).toMatchObject({ tenant, turns: 2, storedBytes: kv.stored?.bytes, complete: true })

  const erased = await call(`${api()}/tenants/${tenant}`, {
    method: 'DELETE',
    headers: { 'x-requested-with': 'context-cache' },
  })
  expect(erased).toMatchObject({ status: 200, body: { tenant, sessions: expect.any(Number), complete: true } })
  expect((await look(stack, id)).status).toBe(404)
  const { body: left } = await call(`${api()}/tenants/${tenant}`)
  expect(left).toMatchObject({ sessions: 0, storedBytes: 0, turns: 0 })
  expect((await call(`${stack.url}/v1/context/${others}`, other)).status).toBe(200)
  const current = async () => (await call(`${api()}/overview`)).body as { readonly current: unknown }
  await eventually(async () => expect((await current()).current).toMatchObject({ sessions: 1, removalsPending: 0 }))
  const line = stack
    .output()
    .split('\n')
    .find((text) => text.includes('"tenant erased"'))
  expect(JSON.parse(line ?? '{}')).toMatchObject({ tenant, cachedAnswers: 0, complete: true })
})
