import { describe, expect, test } from '@jest/globals'
import { type InferenceApi, readCreateBody } from '../../../src/openai/create-body.ts'
import { errorOf } from '../../support/error-of.ts'

const read = (body: object, form?: InferenceApi) => readCreateBody(new Map(Object.entries(body)), form)

const messages = [{ role: 'user', content: 'hi' }]

describe('readCreateBody', () => {
  test.each([
    { name: 'a prompt', body: { prompt: 'hi' }, form: 'completions' },
    { name: 'a prompt of tokens', body: { prompt: [1, 2, 3] }, form: 'completions' },
    { name: 'a list of prompts', body: { prompt: ['a', 'b'] }, form: 'completions' },
    { name: 'messages', body: { messages }, form: 'chat' },
    { name: 'a text input', body: { input: 'hi' }, form: 'responses' },
    { name: 'an input of items', body: { input: [{ role: 'user', content: 'hi' }] }, form: 'responses' },
  ] as const)('reads the form from $name', ({ body, form }) => {
    expect(read({ model: 'm', ...body })).toEqual({ model: 'm', form })
    expect(read({ model: 'm', ...body }, form)).toEqual({ model: 'm', form })
  })

  test('reads only the member of the form that the path fixes', () => {
    expect(read({ model: 'm', prompt: 7, messages }, 'chat')).toEqual({ model: 'm', form: 'chat' })
  })

  test.each([
    { name: 'no model', body: { prompt: 'hi' }, code: 'missing_required_parameter', param: 'model' },
    { name: 'model null', body: { model: null, prompt: 'hi' }, code: 'invalid_type', param: 'model' },
    { name: 'model a number', body: { model: 7, prompt: 'hi' }, code: 'invalid_type', param: 'model' },
    { name: 'model a list', body: { model: ['m'], prompt: 'hi' }, code: 'invalid_type', param: 'model' },
    { name: 'model empty', body: { model: '', prompt: 'hi' }, code: 'invalid_type', param: 'model' },
    { name: 'no prompt of any form', body: { model: 'm' }, code: 'missing_required_parameter', param: 'prompt' },
    { name: 'prompt null', body: { model: 'm', prompt: null }, code: 'invalid_type', param: 'prompt' },
    { name: 'prompt empty', body: { model: 'm', prompt: '' }, code: 'invalid_type', param: 'prompt' },
    { name: 'prompt an empty list', body: { model: 'm', prompt: [] }, code: 'invalid_type', param: 'prompt' },
    { name: 'prompt a number', body: { model: 'm', prompt: 7 }, code: 'invalid_type', param: 'prompt' },
    { name: 'prompt an object', body: { model: 'm', prompt: {} }, code: 'invalid_type', param: 'prompt' },
    { name: 'messages empty', body: { model: 'm', messages: [] }, code: 'invalid_type', param: 'messages' },
    { name: 'messages a text', body: { model: 'm', messages: 'hi' }, code: 'invalid_type', param: 'messages' },
    { name: 'messages of texts', body: { model: 'm', messages: ['hi'] }, code: 'invalid_type', param: 'messages' },
    { name: 'messages with a null', body: { model: 'm', messages: [null] }, code: 'invalid_type', param: 'messages' },
    { name: 'input empty', body: { model: 'm', input: '' }, code: 'invalid_type', param: 'input' },
    { name: 'input true', body: { model: 'm', input: true }, code: 'invalid_type', param: 'input' },
    {
      name: 'prompt and messages',
      body: { model: 'm', prompt: 'hi', messages },
      code: 'invalid_type',
      param: 'prompt',
    },
    { name: 'prompt and input', body: { model: 'm', prompt: 'hi', input: 'hi' }, code: 'invalid_type', param: 'input' },
  ])('refuses on /v1/context: $name', ({ body, code, param }) => {
    expect(errorOf(() => read(body))).toMatchObject({ code, param, status: 400 })
  })

  test.each([
    { form: 'completions', body: { messages }, param: 'prompt' },
    { form: 'chat', body: { prompt: 'hi' }, param: 'messages' },
    { form: 'responses', body: { prompt: 'hi' }, param: 'input' },
  ] as const)('requires $param when the path fixes the form to $form', ({ form, body, param }) => {
    expect(errorOf(() => read({ model: 'm', ...body }, form))).toMatchObject({
      code: 'missing_required_parameter',
      param,
    })
  })

  test('ignores members of the prototype', () => {
    expect(errorOf(() => read(JSON.parse('{"__proto__":{"model":"m","prompt":"hi"}}')))).toMatchObject({
      code: 'missing_required_parameter',
      param: 'model',
    })
  })
})
