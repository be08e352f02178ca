import { defineConnector } from '../connector-definition.ts'
import type { KvConnector } from '../kv-connector.ts'

/** For engines whose KV the gateway cannot move: sessions live and route, and every turn says that nothing is kept. */
export const createNoConnector = (): KvConnector => ({
  prepare: async () => ({ presence: { kind: 'miss', reason: 'no_connector' }, fields: {}, notStored: 'no_connector' }),
})

export const none = defineConnector({
  name: 'none',
  summary: 'no KV is loaded or stored',
  options: {},
  create: createNoConnector,
})
