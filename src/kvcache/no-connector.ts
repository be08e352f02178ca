import { type KvConnector, settledClaim } from './kv-connector.ts'

/** What every session shows as its KV status. */
const status = 'no_connector'

/** For engines whose KV the gateway cannot move: sessions live and route, and every turn says that nothing is kept. */
export const createNoConnector = (): KvConnector & { close(): Promise<void> } => ({
  name: 'none',
  // Once the session has it, nothing is left to record.
  attach: async ({ kvStatus }) => ({
    presence: { kind: 'empty' },
    fields: {},
    claim: kvStatus === status ? settledClaim : '',
  }),
  fieldsWithoutSession: () => ({}),
  offload: async () => ({ kind: 'none', reason: status }),
  detach: async () => {},
  // It stores nothing, so that a payload is another connector's.
  remove: async ({ payload = '' }) => ({ kind: payload === '' ? 'removed' : 'foreign' }),
  reconcile: async () => 0,
  close: async () => {},
})
