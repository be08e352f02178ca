import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import type { KvTraits } from './kv-test-bed.ts'

export const lmcacheTraits = (sharing: Isolation): KvTraits => ({
  storesElsewhere: true,
  loadedBy: 'engine',
  sharing,
  damage: ['cut'],
  sweeps: false,
})
