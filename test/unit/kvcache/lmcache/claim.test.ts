import { expect, test } from '@jest/globals'
import { createCacheSalts } from '../../../../src/kvcache/cache-salts.ts'
import { saltOf } from '../../../../src/kvcache/lmcache/claim.ts'
import { newSession } from '../../../contract/kvcache/kv-test-bed.ts'

test('session stores with one tenant secret have salts of their own, so that none deletes another one’s chunks', () => {
  const { key, tenant } = newSession()
  const parts = { isolation: 'tenant', salts: createCacheSalts('a secret of the tests') } as const
  const salts = ['a', 'b', 'a'].map((store) =>
    saltOf(parts, { tenant, session: key, model: 'tiny' }, { fingerprint: 'f', store, life: '' }),
  )
  expect(salts[1]).not.toBe(salts[0])
  expect(salts[2]).toBe(salts[0])
})
