import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { metric, untilTurnsEnd } from '../support/metrics.ts'
import { createdId } from '../support/sessions.ts'
import { creates } from './fixture.ts'
import { fixture } from './shared-fixture.ts'
import { expectRefusal, reading, someJson, watching } from './support.ts'

// The other reasons for which a create is refused: test/unit/openai.
test.each(
  creates.flatMap((route) => [
    { route, name: 'is not UTF-8', body: '{"model":"m","prompt":"\xff"}', refusal: { code: 'invalid_encoding' } },
    {
      route,
      name: 'names two models',
      body: '{"model":"a","prompt":"x","model":"b"}',
      refusal: { code: 'duplicate_key', param: 'model' },
    },
  ]),
)('a body that creates a session is refused when it $name ($route)', async ({ route, body, refusal }) => {
  await fixture.expectRefused(() => fixture.ask(route, { body }), { status: 400, ...refusal })
})

describe('the body of a turn', () => {
  test.each([
    { name: 'not JSON', body: 'prompt=x' },
    { name: 'an array', body: '[]' },
    { name: 'a text', body: '"x"' },
    { name: 'a number', body: '1' },
    { name: 'blank', body: '  \n' },
    { name: 'cut short', body: someJson.slice(0, -1) },
    { name: 'a byte order mark and an object', body: `\xef\xbb\xbf${someJson}` },
  ])('cannot be changed, and is refused: $name', async ({ body }) => {
    await fixture.expectRefused(() => fixture.ask('use', { body }), { status: 400, code: 'invalid_json' })
  })

  test.each([
    { name: 'plainly', body: '{"model":"other","prompt":"x"}' },
    { name: 'with blanks', body: '{ "model" :\t"other", "prompt":"x"}' },
    { name: 'after a text that looks like the end', body: '{"prompt":"\\"}","model":"other"}' },
    { name: 'behind very many colons', body: `{"prompt":"${':'.repeat(300_000)}","model":"other"}` },
    { name: 'far behind its key', body: `{"model"${' '.repeat(1000)}:${'\n'.repeat(1000)}"other"}` },
    { name: 'that begins alike', body: '{"model":"tiny-random-2","prompt":"x"}' },
  ])('is refused when it names another model $name', async ({ body }) => {
    await fixture.expectRefused(() => fixture.ask('use', { body }), {
      status: 400,
      code: 'model_mismatch',
      param: 'model',
    })
  })

  test.each([
    { name: 'names another model', body: '{"model":"other","prompt":"x"}' },
    { name: 'is no object', body: '[1]' },
  ])('ends its turn at once when it $name', async ({ body }) => {
    const { stack } = fixture
    const ended = () => metric(stack, 'turns_total', { outcome: 'engine_error' })
    await untilTurnsEnd(stack)
    const before = await ended()

    await fixture.ask('use', { body })

    // A lease would hold the session, and count, for minutes.
    await eventually(async () =>
      expect([await metric(stack, 'turns_in_flight'), await ended()]).toEqual([0, before + 1]),
    )
  })

  test.each([
    { name: 'its own model', body: someJson },
    { name: 'its own model in escapes', body: '{"model":"tiny\\u002drandom","prompt":"x"}' },
    { name: 'its own model last', body: '{"model":"other","model":"tiny-random","prompt":"x"}' },
    { name: 'another model after the right one', body: '{"model":"tiny-random","prompt":"x","model":"other"}' },
    {
      name: 'another model with its key in escapes',
      body: '{"model":"tiny-random","prompt":"x","mod\\u0065l":"other"}',
    },
    { name: 'another model in escapes', body: '{"model":"oth\\u0065r","prompt":"x"}' },
    { name: 'another model behind a nested right one', body: '{"tools":[{"model":"tiny-random"}],"model":"other"}' },
    { name: 'another model in a text', body: '{"prompt":"{\\"model\\":\\"other\\"}","model":"tiny-random"}' },
    { name: 'another model further inside', body: '{"tools":[{"model":"other"}],"model":"tiny-random"}' },
    { name: 'a model as a property of a tool', body: '{"tools":[{"model":{"type":"string"}}],"model":"tiny-random"}' },
    { name: 'no model, which the engine will say', body: '{"prompt":"x"}' },
    { name: 'a model by number, which the engine will say', body: '{"model":1,"prompt":"x"}' },
    { name: 'a trailing comma, which the engine will say', body: '{"model":"tiny-random",}' },
    { name: 'bytes that are not UTF-8, which the engine will say', body: '{"model":"tiny-random","prompt":"\xff"}' },
    { name: 'a long blank end', body: `${someJson}${' \r\n\t'.repeat(500)}` },
    { name: 'nothing', body: '{}' },
  ])('reaches the engine with $name', async ({ body }) => {
    const { result, arrivals } = await watching(fixture, () => fixture.ask('use', { body }))

    expect(result.status).toBe(200)
    expect(arrivals.map(({ request }) => request.bytes.toString('latin1'))).toEqual([body])
  })

  test('may name a model with characters that some writers of JSON escape', async () => {
    const name = 'org/model é'
    const id = await createdId(fixture.stack, { body: { model: name, prompt: 'x' } })
    const headers = { 'x-session-id': id }

    const escaped = '{"model":"org\\/model \\u00E9","prompt":"x"}'
    const response = await call(`${fixture.stack.url}/v1/completions`, { headers, rawBody: escaped })
    const other = await call(`${fixture.stack.url}/v1/completions`, {
      headers,
      body: { model: 'org/model e', prompt: 'x' },
    })

    expect(response.status).toBe(200)
    expectRefusal(reading(other), { status: 400, code: 'model_mismatch', param: 'model' })
  })
})
