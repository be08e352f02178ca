import { afterAll, beforeAll } from '@jest/globals'
import { gatewayEnvironment } from '../../../playground/vllm/fleet-description.ts'
import { type Stack, type StackOptions, startStack } from '../../integration/support/stack.ts'
import { vllmFleet } from './fleet.ts'

type VllmStackOptions = Pick<StackOptions, 'store' | 'gateways'> & { readonly env?: Readonly<Record<string, string>> }

/** A stack that starts before the tests of a block and stops after them. */
export const useVllmStack = (options: VllmStackOptions = {}): (() => Stack) => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startVllmStack(options)
  }, 120_000)
  afterAll(async () => {
    await stack?.stop()
  }, 60_000)
  return () => stack
}

/** Real Envoy and real gateways in front of the running fleet, with the connector `lmcache`. */
export const startVllmStack = (options: VllmStackOptions = {}): Promise<Stack> => {
  const fleet = vllmFleet()
  return startStack({
    ...options,
    pods: async () => fleet.pods.map(({ address }) => ({ address })),
    env: { ...gatewayEnvironment(fleet), ...options.env },
  })
}
