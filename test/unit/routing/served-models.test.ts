import { expect, test } from '@jest/globals'
import { parseServedModels, serviceOf } from '../../../src/routing/served-models.ts'

const vllm = {
  object: 'list',
  data: [
    { id: 'base', owned_by: 'vllm', root: '/models/base', parent: null, max_model_len: 4096 },
    { id: 'second-name', owned_by: 'vllm', root: '/models/base', parent: null },
    { id: 'adapter', owned_by: 'vllm', root: '/adapters/a', parent: 'base' },
  ],
}
const llamaServer = { models: [], data: [{ id: 'm.gguf', aliases: ['m'], owned_by: 'llamacpp', meta: { n_ctx: 1 } }] }

test.each<[string, unknown, readonly string[], boolean]>([
  ['names and adapters of vLLM', vllm, ['base', 'second-name', 'adapter'], false],
  ['aliases of llama-server, which answers any name', llamaServer, ['m.gguf', 'm'], true],
  ['an entry with nothing but an id', { data: [{ id: 'm' }] }, ['m'], false],
  ['any name where none is listed', { data: [] }, [], true],
  ['any name in another answer', { error: { message: 'Not Found' } }, [], true],
  ['any name in an entry without an id', { data: [{}] }, [], true],
])('parseServedModels reads %s', (_title, answer, names, answersAnyName) => {
  expect(parseServedModels(JSON.stringify(answer))).toEqual({ names: new Set(names), answersAnyName })
})

test('a pool without pods serves the models that are configured for it, and no others', () => {
  expect([serviceOf([], 'm', ['m']), serviceOf([], 'n', ['m']), serviceOf([], 'm')]).toEqual(['listed', 'no', 'no'])
})
