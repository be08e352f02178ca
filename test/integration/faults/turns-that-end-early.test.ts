import { beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { useScriptedStack } from '../support/use-stack.ts'

describe('a turn that ends before it reaches a pod', () => {
  const { stack } = useScriptedStack()
  let id: string

  beforeAll(async () => {
    const created = await call(`${stack.url}/v1/context`, { body: { model, prompt: 'a', max_tokens: 1 } })
    id = created.headers.get('x-session-id') ?? ''
    expect(id).not.toBe('')
  })
  // A lease would hold the session, and count, for minutes.
  const untilEnded = (outcome: string, turns: number) =>
    eventually(async () => {
      expect(await metric(stack, 'turns_in_flight')).toBe(0)
      expect(await metric(stack, 'turns_total', { outcome })).toBe(turns)
    })

  test.each([
    { name: 'names another model', body: { model: 'another', prompt: 'a' }, code: 'model_mismatch' },
    { name: 'is no object', body: [1], code: 'invalid_json' },
  ])('ends at once when its body $name', async ({ body, code }) => {
    const before = await metric(stack, 'turns_total', { outcome: 'engine_error' })
    const response = await call(`${stack.url}/v1/completions`, { headers: { 'x-session-id': id }, body })
    expect(response).toMatchObject({ status: 400, body: { error: { code } } })
    await untilEnded('engine_error', before + 1)
  })
})
