import { type KvConnector, settledClaim } from './kv-connector.ts'

/** What every session is told of its KV. */
const note = 'no_connector'

/** For engines whose KV the gateway cannot move: sessions live and route, and every turn says that nothing is kept. */
export const createNoConnector = (): KvConnector & { close(): Promise<void> } => ({
  name: 'none',
  // Once it is noted, nothing is left to say.
  attach: async ({ kvNote }) => ({
    presence: { kind: 'empty' },
    fields: {},
    claim: kvNote === note ? settledClaim : '',
  }),
  fieldsWithoutSession: () => ({}),
  offload: async () => ({ kind: 'none', reason: note }),
  detach: async () => {},
  remove: async () => ({ kind: 'removed' }),
  reconcile: async () => 0,
  close: async () => {},
})
