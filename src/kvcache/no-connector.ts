import type { KvConnector } from './kv-connector.ts'

/** For engines whose KV the gateway cannot move: sessions live and route, and every turn says that nothing is kept. */
export const createNoConnector = (): KvConnector & { close(): Promise<void> } => ({
  name: 'none',
  isInstant: () => true,
  attach: async () => ({ presence: { kind: 'empty' }, fields: {}, claim: '' }),
  fieldsWithoutSession: () => ({}),
  offload: async () => ({ kind: 'none', reason: 'no_connector' }),
  detach: async () => {},
  remove: async () => ({ kind: 'removed' }),
  reconcile: async () => 0,
  close: async () => {},
})
