import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { loadArtefactStore } from '../../../src/kvcache/artefact-store/artefact-store.ts'
import { startObjectServer } from '../../support/object-server.ts'
import { describeArtefactStore } from './artefact-store-suite.ts'

const examplePath = fileURLToPath(new URL('../../../examples/http-artefact-store.mjs', import.meta.url))

const startExample = async () => {
  const server = await startObjectServer()
  process.env['ARTEFACT_STORE_URL'] = server.url
  return { server, store: await loadArtefactStore(examplePath) }
}

describeArtefactStore('examples/http-artefact-store.mjs', async () => {
  const { server, store } = await startExample()
  return { store, names: async () => [...server.objects.keys()], close: () => server.close() }
})

test.each([500, 403, 302])('the example rejects status %i, and does not take it for a miss', async (status) => {
  const { server, store } = await startExample()
  const signal = AbortSignal.timeout(10_000)
  try {
    server.failWith(status)
    await expect(store.load('any', { signal })).rejects.toThrow()
    await expect(store.remove('any', { signal })).rejects.toThrow()
  } finally {
    await server.close()
  }
})

test.each([
  { name: 'does not exist', path: '/nowhere/store.mjs', problem: /nowhere/ },
  {
    name: 'exports something else',
    path: fileURLToPath(new URL('../../../jest.config.js', import.meta.url)),
    problem: /createArtefactStore/,
  },
])('a module that $name is refused with the reason', async ({ path, problem }) => {
  await expect(loadArtefactStore(path)).rejects.toThrow(problem)
})
