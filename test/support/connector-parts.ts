import { createEngineHttp } from '../../src/engines/engine-http.ts'
import { createCacheSalts } from '../../src/kvcache/cache-salts.ts'
import type { ConnectorParts } from '../../src/kvcache/connector-definition.ts'

/** What the gateway gives a connector, of a store in memory. Salts follow from the secret. */
export const connectorParts = ({
  secret = 'secret',
  ...own
}: Partial<ConnectorParts> & { readonly secret?: string } = {}): ConnectorParts => ({
  pods: () => [],
  instanceOf: () => undefined,
  http: createEngineHttp({ callsPerPod: 4 }),
  access: {},
  salts: createCacheSalts(secret),
  identity: { name: async () => 'store', staleAfterMs: 600_000 },
  redis: undefined,
  maxTurnMs: 60_000,
  orphanGraceMs: 0,
  maxArtefactBytes: undefined,
  roomAt: () => {},
  warnings: { raise: () => {}, raiseOutage: () => {}, clear: () => {} },
  log: { debug: () => {}, info: () => {}, warn: () => {} },
  ...own,
})
