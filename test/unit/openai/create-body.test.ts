import { describe, expect, test } from '@jest/globals'
import { type InferenceApi, readCreateBody } from '../../../src/openai/create-body.ts'
import { allSlices } from '../../support/all-slices.ts'
import { errorOf } from '../../support/error-of.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const readText = (text: string, form?: InferenceApi) => allSlices(readCreateBody(Buffer.from(text), form, limits))
const read = (body: object, form?: InferenceApi) => readText(JSON.stringify(body), form)

const messages = [{ role: 'user', content: 'hi' }]
const longName = 'é'.repeat(1025)

describe('readCreateBody', () => {
  test.each([
    { name: 'a prompt', body: { prompt: 'hi' }, form: 'completions' },
    { name: 'a prompt of tokens', body: { prompt: [1, 2, 3] }, form: 'completions' },
    { name: 'a list of prompts', body: { prompt: ['a', 'b'] }, form: 'completions' },
    { name: 'messages', body: { messages }, form: 'chat' },
    { name: 'messages', body: { messages, system: 'x' }, form: 'messages', onContext: 'chat' },
    { name: 'messages beside nulls', body: { messages, prompt: null, input: null }, form: 'chat' },
    { name: 'a text input', body: { input: 'hi' }, form: 'responses' },
    { name: 'an input of items', body: { input: [{ role: 'user', content: 'hi' }] }, form: 'responses' },
  ] as const)('reads the form from $name', ({ body, form, ...other }) => {
    expect(read({ model: 'm', ...body })).toEqual({ model: 'm', form: 'onContext' in other ? other.onContext : form })
    expect(read({ model: 'm', ...body }, form)).toEqual({ model: 'm', form })
  })

  test('reads a model of 1024 characters', () => {
    const model = longName.slice(1)
    expect(read({ model, prompt: 'hi' })).toEqual({ model, form: 'completions' })
  })

  test('reads only the member of the form that the path fixes', () => {
    expect(read({ model: 'm', prompt: 7, messages }, 'chat')).toEqual({ model: 'm', form: 'chat' })
  })

  test.each([
    { param: 'model', values: [null, 7, ['m'], '', longName, 'm\ud800'], rest: { prompt: 'hi' } },
    { param: 'prompt', values: ['', [], 7, {}], rest: {} },
    { param: 'messages', values: [[], 'hi', ['hi'], [null]], rest: {} },
    { param: 'input', values: ['', true], rest: {} },
  ])('refuses on /v1/context any other $param', ({ param, values, rest }) => {
    const errors = values.map((value) => errorOf(() => read({ model: 'm', ...rest, [param]: value })))

    expect(errors).toEqual(values.map(() => expect.objectContaining({ code: 'invalid_type', param, status: 400 })))
  })

  test.each([
    { name: 'no model', body: { prompt: 'hi' }, code: 'missing_required_parameter', param: 'model' },
    { name: 'no prompt of any form', body: { model: 'm' }, code: 'missing_required_parameter', param: 'prompt' },
    { name: 'a null', body: { model: 'm', prompt: null }, code: 'missing_required_parameter', param: 'prompt' },
    { name: 'two prompts', body: { model: 'm', prompt: 'hi', messages }, code: 'invalid_type', param: 'prompt' },
    { name: 'prompt and input', body: { model: 'm', prompt: 'hi', input: 'hi' }, code: 'invalid_type', param: 'input' },
  ])('refuses on /v1/context: $name', ({ body, code, param }) => {
    expect(errorOf(() => read(body))).toMatchObject({ code, param, status: 400 })
  })

  test.each([
    { form: 'completions', body: { messages }, param: 'prompt' },
    { form: 'chat', body: { prompt: 'hi' }, param: 'messages' },
    { form: 'responses', body: { prompt: 'hi' }, param: 'input' },
    { form: 'messages', body: { input: 'hi' }, param: 'messages' },
  ] as const)('requires $param when the path fixes the form to $form', ({ form, body, param }) => {
    expect(errorOf(() => read({ model: 'm', ...body }, form))).toMatchObject({
      code: 'missing_required_parameter',
      param,
    })
  })

  test('takes the last prompt of several, as engines do', () => {
    expect(readText('{"model":"m","prompt":7,"prompt":"hi"}')).toEqual({ model: 'm', form: 'completions' })
    expect(errorOf(() => readText('{"model":"m","prompt":"hi","prompt":[]}'))).toMatchObject({ param: 'prompt' })
  })

  test('takes a prompt of a million token ids', () => {
    const prompt = Array.from({ length: 1_000_000 }, (_, index) => index % 100_000)
    expect(read({ model: 'm', prompt })).toEqual({ model: 'm', form: 'completions' })
  })

  test('ignores members of the prototype', () => {
    expect(errorOf(() => readText('{"__proto__":{"model":"m","prompt":"hi"}}'))).toMatchObject({
      code: 'missing_required_parameter',
      param: 'model',
    })
  })
})
