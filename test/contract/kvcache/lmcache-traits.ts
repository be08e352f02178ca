import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import type { KvTraits } from './kv-test-bed.ts'

/** Without KV events the gateway cannot name chunks, and KV is isolated by session, whatever is asked for. */
export const lmcacheTraits = (fleet: { readonly isolation: Isolation; readonly events: boolean }): KvTraits => ({
  loadedBy: 'engine',
  sharing: fleet.isolation === 'tenant' && fleet.events ? 'tenant' : 'session',
  damage: ['cut'],
  sweeps: false,
})
