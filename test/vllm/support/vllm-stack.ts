import { type Stack, type StackOptions, startStack } from '../../integration/support/stack.ts'
import { vllmFleet } from './fleet.ts'

/** Real Envoy and real gateways in front of the running fleet, with the connector `lmcache`. */
export const startVllmStack = (
  options: Pick<StackOptions, 'store' | 'gateways'> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Stack> => {
  const { pods, coordinatorUrl } = vllmFleet()
  return startStack({
    ...options,
    pods: async () => pods.map(({ address }) => ({ address })),
    env: {
      CONNECTOR: 'lmcache',
      LMCACHE_URL: coordinatorUrl,
      LMCACHE_INSTANCES: pods.map(({ address, lmcacheInstance }) => `${address}=${lmcacheInstance}`).join(','),
      ...options.env,
    },
  })
}
