import { planAdmission } from '../admission/plan/plan-admission.ts'
import { connectors } from '../kvcache/registry.ts'
import { storeOf } from './config.ts'
import { type ConfigProblem, problemIf } from './config-problem.ts'
import { checkPools } from './pool-checks.ts'
import { listedPods, poolsOf } from './pools.ts'
import type { ParsedConfig } from './schema.ts'

/** Checks options against each other. Takes only the groups that are valid by themselves, so that all problems are reported at once. */
export const checkAcrossOptions = (groups: Partial<ParsedConfig>): readonly ConfigProblem[] => {
  const { sessions, tenant, routing, engines, kv, pools, reaper, admission } = groups
  return [
    ...(sessions === undefined ? [] : checkSessions(sessions)),
    ...(sessions === undefined || tenant === undefined ? [] : checkSecret(sessions, tenant)),
    ...(routing && engines && kv && pools && reaper ? checkPools({ routing, engines, kv, pools, reaper }) : []),
    ...(routing && engines && kv && pools && admission
      ? checkAdmission(admission, { routing, engines, kv, pools })
      : []),
  ]
}

const checkSessions = (sessions: ParsedConfig['sessions']): readonly ConfigProblem[] => [
  ...problemIf(
    sessions.store === 'redis' && sessions.redisUrl === undefined,
    'sessions.redisUrl',
    'The Redis store needs sessions.redisUrl or sessions.redisUrlFile',
  ),
  ...problemIf(
    sessions.minTtlSeconds > sessions.maxTtlSeconds,
    'sessions.minTtlSeconds',
    'Must not exceed sessions.maxTtlSeconds',
  ),
  ...problemIf(
    sessions.defaultTtlSeconds < sessions.minTtlSeconds || sessions.defaultTtlSeconds > sessions.maxTtlSeconds,
    'sessions.defaultTtlSeconds',
    'Must lie between sessions.minTtlSeconds and sessions.maxTtlSeconds',
  ),
]

const checkSecret = (sessions: ParsedConfig['sessions'], tenant: ParsedConfig['tenant']): readonly ConfigProblem[] =>
  problemIf(
    storeOf(sessions) === 'redis' && tenant.secret === undefined,
    'tenant.secret',
    'Sessions in Redis outlive the process, and so must the secret: give tenant.secret or tenant.secretFile',
  )

/** What the gateway adds when it tells Envoy how long a decision may take. */
const decisionMarginMs = 1000

const checkAdmission = (
  admission: ParsedConfig['admission'],
  groups: Parameters<typeof poolsOf>[0],
): readonly ConfigProblem[] => {
  const outcome = planAdmission(admission, listedPods(groups))
  const pools = poolsOf(groups)
  const loading = connectors.filter(({ loads }) => loads).map(({ name }) => name)
  const longestLoadMs = Math.max(...pools.map(({ kv }) => kv.loadBudgetMs))
  return [
    ...(outcome.kind === 'invalid'
      ? outcome.problems.map(({ option, message }) => ({ message, path: ['admission', option] }))
      : []),
    ...problemIf(
      admission.requirements.length > 0 &&
        admission.maxWaitMs + longestLoadMs + decisionMarginMs > admission.messageTimeoutMs,
      'admission.maxWaitMs',
      'Together with kv.loadBudgetMs and a second it must not exceed admission.messageTimeoutMs, else Envoy gives up turns that wait',
    ),
    ...problemIf(
      pools.every(({ kv }) => kv.connectorModule === undefined && !loading.includes(kv.connector)) &&
        admission.requirements.some((text) => text.startsWith('load')),
      'admission.requirements',
      `Only with the connector ${loading.join(', ')} or a module does the gateway decide on loads: remove the requirements of load`,
    ),
  ]
}
