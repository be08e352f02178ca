import { expect, test } from '@jest/globals'
import { contextTokensOf, parseServedModels, serviceOf } from '../../../src/routing/served-models.ts'

const vllm = {
  object: 'list',
  data: [
    { id: 'base', owned_by: 'vllm', root: '/models/base', parent: null, max_model_len: 4096 },
    { id: 'second-name', owned_by: 'vllm', root: '/models/base', parent: null },
    { id: 'adapter', owned_by: 'vllm', root: '/adapters/a', parent: 'base' },
  ],
}
const llamaServer = { models: [], data: [{ id: 'm.gguf', aliases: ['m'], owned_by: 'llamacpp', meta: { n_ctx: 1 } }] }

test.each<[string, unknown, readonly string[], boolean, number | undefined]>([
  ['names and adapters of vLLM', vllm, ['base', 'second-name', 'adapter'], false, 4096],
  ['aliases of llama-server, which answers any name', llamaServer, ['m.gguf', 'm'], true, 1],
  ['an entry with nothing but an id', { data: [{ id: 'm' }] }, ['m'], false, undefined],
  ['any name where none is listed', { data: [] }, [], true, undefined],
  ['any name in another answer', { error: { message: 'Not Found' } }, [], true, undefined],
  ['any name in an entry without an id', { data: [{}] }, [], true, undefined],
])('parseServedModels reads %s', (_title, answer, names, answersAnyName, contextTokens) => {
  const read = parseServedModels(JSON.stringify(answer))
  expect(read).toEqual({ names: new Set(names), answersAnyName, contextTokens })
})

test('the shortest context of the pods that may serve a model counts', () => {
  const podWith = (max_model_len: number | undefined, id = 'm') => ({
    models: parseServedModels(JSON.stringify({ data: [{ id, max_model_len }] })),
  })
  const pods = [podWith(8192), podWith(4096), podWith(undefined), podWith(16, 'other'), {}]
  expect(contextTokensOf(pods, 'm')).toBe(4096)
  expect(contextTokensOf([podWith(undefined), {}], 'm')).toBeUndefined()
})

test('a pool without pods serves the models that are configured for it, and no others', () => {
  expect([serviceOf([], 'm', ['m']), serviceOf([], 'n', ['m']), serviceOf([], 'm')]).toEqual(['listed', 'no', 'no'])
})
