import { expect, test } from '@jest/globals'
import { createInstances } from '../../../../src/kvcache/lmcache/instances.ts'

test('the size of chunks is known while no instance answers any more', async () => {
  const sizes = [256]
  const client = {
    instances: async () => [{ id: 'a', ip: '10.0.0.1', address: '10.0.0.1:8080' }],
    chunkTokens: async () => sizes.pop() ?? Promise.reject(new Error('away')),
  }
  const instances = createInstances(client, () => undefined, -1)
  const { signal } = new AbortController()
  expect([await instances.chunkTokens(signal), await instances.chunkTokens(signal)]).toEqual([256, 256])
})
