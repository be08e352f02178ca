import { parseResourceCount } from '../admission/plan/admission-notation.ts'
import { decisionMarginMs } from '../admission/plan/decision-margin.ts'
import { planAdmission } from '../admission/plan/plan-admission.ts'
import { connectors } from '../kvcache/registry.ts'
import { isByIp } from '../options/values.ts'
import { type ConfigProblem, problemIf } from './config-problem.ts'
import { isOpenPort } from './open-port.ts'
import { checkPools } from './pool-checks.ts'
import { listedPods, poolsOf } from './pools.ts'
import { redisOptions, storeOf } from './redis-choice.ts'
import type { ParsedConfig } from './schema.ts'

/** Checks options against each other. Takes only groups valid by themselves, so all problems are reported at once. */
export const checkAcrossOptions = (groups: Partial<ParsedConfig>): readonly ConfigProblem[] => {
  const { listen, sessions, tenant, turns, routing, engines, kv, pools, reaper, admission } = groups
  const { responseCache, responses } = groups
  return [
    ...(listen === undefined || tenant === undefined ? [] : checkPrincipal(listen, tenant)),
    ...(sessions === undefined ? [] : checkSessions(sessions)),
    ...(sessions === undefined || tenant === undefined ? [] : checkSecret(sessions, tenant)),
    ...(routing && engines && kv && pools && reaper ? checkPools({ routing, engines, kv, pools, reaper }) : []),
    ...(routing && engines && kv && pools && admission
      ? checkAdmission(admission, { routing, engines, kv, pools })
      : []),
    ...(turns && responseCache ? checkResponseCache(responseCache, turns) : []),
    ...(responses === undefined ? [] : checkResponses(responses)),
    ...(engines && pools && responses?.store === false ? checkResponsesApi({ engines, pools }) : []),
  ]
}

const checkSessions = (sessions: ParsedConfig['sessions']): readonly ConfigProblem[] => {
  const { defaultTtlSeconds: ttl, minTtlSeconds: min, maxTtlSeconds: max } = sessions
  return [
    ...checkRedis(sessions),
    ...problemIf(
      min > max,
      'sessions.minTtlSeconds',
      `sessions.minTtlSeconds (${min}) must not exceed sessions.maxTtlSeconds (${max})`,
      ['sessions.maxTtlSeconds'],
    ),
    ...problemIf(
      min <= max && (ttl < min || ttl > max),
      'sessions.defaultTtlSeconds',
      `sessions.defaultTtlSeconds (${ttl}) must lie between sessions.minTtlSeconds (${min}) and sessions.maxTtlSeconds (${max})`,
      ttl < min ? ['sessions.minTtlSeconds'] : ['sessions.maxTtlSeconds'],
    ),
  ]
}

const checkRedis = (sessions: ParsedConfig['sessions']): readonly ConfigProblem[] => {
  const { redisCluster, redisSentinels, redisSentinelMaster: master, redisTls, keyPrefix } = sessions
  const given = redisOptions.filter((option) => sessions[option] !== undefined)
  const [first = 'redisUrl', second = first] = given
  return [
    ...problemIf(
      sessions.store === 'redis' && given.length === 0,
      'sessions.redisUrl',
      'the Redis store needs sessions.redisUrl, sessions.redisCluster or sessions.redisSentinels, or a file of it (sessions.redisUrlFile)',
    ),
    ...problemIf(
      given.length > 1,
      `sessions.${second}`,
      `sessions are in one Redis: give either sessions.${first} or sessions.${second}, not both`,
      [`sessions.${first}`],
    ),
    ...problemIf(
      redisSentinels !== undefined && master === undefined,
      'sessions.redisSentinelMaster',
      'sentinels watch several masters: name the one of the sessions in sessions.redisSentinelMaster',
      ['sessions.redisSentinels'],
    ),
    ...(['redisSentinelMaster', 'redisSentinelPassword'] as const).flatMap((option) =>
      problemIf(
        redisSentinels === undefined && sessions[option] !== undefined,
        `sessions.${option}`,
        'is of sentinels alone: give sessions.redisSentinels too',
      ),
    ),
    ...problemIf(
      redisTls !== undefined && given.some((option) => !sessions[option]?.startsWith('rediss:')),
      'sessions.redisTls',
      `TLS is for rediss:// alone: begin sessions.${first} with it`,
    ),
    ...problemIf(
      redisCluster !== undefined && /[{}]/.test(keyPrefix),
      'sessions.keyPrefix',
      'must have no braces in a Redis Cluster, which takes what is in them for the place of the key',
    ),
  ]
}

const checkPrincipal = (
  { extproc }: ParsedConfig['listen'],
  { principalHeader, principalFromAnyPeer }: ParsedConfig['tenant'],
): readonly ConfigProblem[] =>
  problemIf(
    principalHeader !== undefined && !principalFromAnyPeer && isOpenPort(extproc),
    'tenant.principalHeader',
    'whoever reaches the gRPC port could be any tenant: ask for client certificates (listen.extproc.tls.clientCa), or listen on a Unix socket or a loopback address, or, where a network policy lets Envoy alone connect, set tenant.principalFromAnyPeer',
    ['listen.extproc.host'],
  )

/** A cached answer is sent in one message, and gRPC bounds messages by the largest body. */
const checkResponseCache = (
  { maxBytes, maxEntryBytes }: ParsedConfig['responseCache'],
  { maxBodyBytes }: ParsedConfig['turns'],
): readonly ConfigProblem[] =>
  problemIf(
    Math.min(maxBytes, maxEntryBytes) > maxBodyBytes,
    'responseCache.maxEntryBytes',
    `responseCache.maxEntryBytes (${maxEntryBytes}) must not exceed turns.maxBodyBytes (${maxBodyBytes}), else answers are kept that cannot be sent`,
    ['turns.maxBodyBytes'],
  )

const checkResponses = ({ maxItemBytes, maxConversationBytes }: ParsedConfig['responses']): readonly ConfigProblem[] =>
  problemIf(
    maxItemBytes > maxConversationBytes,
    'responses.maxItemBytes',
    `responses.maxItemBytes (${maxItemBytes}) must not exceed responses.maxConversationBytes (${maxConversationBytes})`,
    ['responses.maxConversationBytes'],
  )

/** Elsewhere the gateway sees no body of /v1/responses, and changes no answer. */
const checkResponsesApi = ({ engines, pools }: Pick<ParsedConfig, 'engines' | 'pools'>): readonly ConfigProblem[] =>
  [{ path: 'engines', ...engines }, ...pools.map((pool, index) => ({ ...pool, path: `pools.${index}` }))].flatMap(
    ({ responsesApi, path }) =>
      problemIf(responsesApi === 'chat', `${path}.responsesApi`, 'belongs to responses.store: set that to true'),
  )

const checkSecret = (sessions: ParsedConfig['sessions'], tenant: ParsedConfig['tenant']): readonly ConfigProblem[] => [
  ...problemIf(
    storeOf(sessions) === 'redis' && tenant.secret === undefined,
    'tenant.secret',
    'sessions in Redis outlive the process, and so must the secret: give tenant.secret or tenant.secretFile',
  ),
  ...problemIf(
    tenant.previousSecret !== undefined && tenant.previousSecret === tenant.secret,
    'tenant.previousSecret',
    'is the same as tenant.secret: give the other one, or none',
  ),
]

const checkAdmission = (
  admission: ParsedConfig['admission'],
  groups: Parameters<typeof poolsOf>[0],
): readonly ConfigProblem[] => {
  const outcome = planAdmission(admission, listedPods(groups))
  const pools = poolsOf(groups)
  const loading = connectors.filter(({ loads }) => loads === true).map(({ name }) => name)
  const longestLoadMs = Math.max(...pools.map(({ kv }) => kv.loadBudgetMs))
  const waits = admission.requirements.length > 0
  const counts = admission.resources.map(parseResourceCount)
  const namesHost = counts.some((count) => typeof count?.pod === 'string' && !isByIp(count.pod))
  return [
    ...problemIf(namesHost, 'admission.resources', 'name pods by IP address: the gateway resolves host names'),
    ...(outcome.kind === 'invalid'
      ? outcome.problems.map(({ option, message }) => ({ message, path: ['admission', option] }))
      : []),
    ...problemIf(
      (waits ? admission.maxWaitMs : 0) + longestLoadMs + decisionMarginMs > admission.messageTimeoutMs,
      waits ? 'admission.maxWaitMs' : 'kv.loadBudgetMs',
      `${waits ? `admission.maxWaitMs (${admission.maxWaitMs}), ` : ''}the longest kv.loadBudgetMs (${longestLoadMs}) and ${decisionMarginMs} ms together must not exceed admission.messageTimeoutMs (${admission.messageTimeoutMs}), else Envoy gives up turns that wait`,
      ['admission.messageTimeoutMs', ...groups.pools.map((_, index) => `pools.${index}.kv.loadBudgetMs`)],
    ),
    ...problemIf(
      pools.every(({ kv }) => kv.connectorModule === undefined && !loading.includes(kv.connector)) &&
        admission.requirements.some((text) => text.startsWith('load')),
      'admission.requirements',
      `only with the connector ${loading.join(', ')} or a module does the gateway decide on loads: remove the requirements of load`,
    ),
  ]
}
