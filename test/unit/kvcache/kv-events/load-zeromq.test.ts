import { expect, test } from '@jest/globals'
import { loadZeromq } from '../../../../src/kvcache/kv-events/load-zeromq.ts'

test('a missing zeromq fails with how to install it', () => {
  const missing = () => {
    throw new Error("Cannot find module 'zeromq'")
  }
  expect(() => loadZeromq(missing)).toThrow('npm install zeromq')
})
