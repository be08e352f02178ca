import type { Check } from '../finding.ts'
import { accessLogChecks } from './access-log.ts'
import { bufferLimitChecks } from './buffer-limits.ts'
import { circuitBreakerChecks } from './circuit-breakers.ts'
import { clockChecks } from './clocks.ts'
import { envoyChecks } from './envoy-itself.ts'
import { headerChecks } from './forwarded-headers.ts'
import { gatewayChecks } from './gateway.ts'
import { luaChecks } from './lua-files.ts'
import { outsideChecks } from './outside.ts'
import { engineChecks } from './pods-agree.ts'
import { podChecks } from './pods-in-envoy.ts'
import { redisChecks } from './redis.ts'
import { spoofingChecks } from './spoofing.ts'
import { timeoutChecks } from './timeouts.ts'

const reachable: Check = {
  name: 'reachable',
  run: ({ silent }) =>
    silent.map((problem) => ({
      severity: 'error',
      problem,
      why: 'Nothing of it could be checked.',
      fix: 'its address, and whether it runs',
    })),
}

/** Every check of `doctor`, in the order in which it lists those that it could not make. */
export const allChecks: readonly Check[] = [
  reachable,
  ...gatewayChecks,
  ...engineChecks,
  ...redisChecks,
  ...clockChecks,
  ...outsideChecks,
  ...envoyChecks,
  ...timeoutChecks,
  ...bufferLimitChecks,
  ...circuitBreakerChecks,
  ...spoofingChecks,
  ...headerChecks,
  ...accessLogChecks,
  ...luaChecks,
  ...podChecks,
]
