import { planAdmission } from '../admission/plan/plan-admission.ts'
import { storeOf } from './config.ts'
import type { ConfigProblem } from './config-problem.ts'
import type { ParsedConfig } from './config-schema.ts'

/** What several options say together. Looks only at the groups that are right by themselves, so that all problems show at once. */
export const checkAcrossOptions = (groups: Partial<ParsedConfig>): readonly ConfigProblem[] => [
  ...(groups.sessions === undefined ? [] : checkSessions(groups.sessions)),
  ...(groups.sessions === undefined || groups.tenant === undefined ? [] : checkSecret(groups.sessions, groups.tenant)),
  ...(groups.routing === undefined ? [] : checkRouting(groups.routing)),
  ...(groups.kv === undefined ? [] : checkKv(groups.kv)),
  ...(groups.kv === undefined || groups.reaper === undefined ? [] : checkReaper(groups.reaper, groups.kv)),
  ...(groups.admission === undefined || groups.routing === undefined
    ? []
    : checkResources(groups.admission, groups.routing)),
  ...(groups.admission === undefined || groups.kv === undefined ? [] : checkAdmission(groups.admission, groups.kv)),
]

const problemIf = (wrong: boolean, message: string, ...path: readonly string[]): readonly ConfigProblem[] =>
  wrong ? [{ message, path }] : []

const checkSessions = (sessions: ParsedConfig['sessions']): readonly ConfigProblem[] => [
  ...problemIf(
    sessions.store === 'redis' && sessions.redisUrl === undefined,
    'The Redis store needs sessions.redisUrl or sessions.redisUrlFile',
    'sessions',
    'redisUrl',
  ),
  ...problemIf(
    sessions.minTtlSeconds > sessions.maxTtlSeconds,
    'Must not exceed sessions.maxTtlSeconds',
    'sessions',
    'minTtlSeconds',
  ),
  ...problemIf(
    sessions.defaultTtlSeconds < sessions.minTtlSeconds || sessions.defaultTtlSeconds > sessions.maxTtlSeconds,
    'Must lie between sessions.minTtlSeconds and sessions.maxTtlSeconds',
    'sessions',
    'defaultTtlSeconds',
  ),
]

const checkSecret = (sessions: ParsedConfig['sessions'], tenant: ParsedConfig['tenant']): readonly ConfigProblem[] =>
  problemIf(
    storeOf(sessions) === 'redis' && tenant.secret === undefined,
    'Sessions in Redis outlive the process, and so must the secret: give tenant.secret or tenant.secretFile',
    'tenant',
    'secret',
  )

const checkRouting = ({ pods, dns }: ParsedConfig['routing']): readonly ConfigProblem[] => [
  ...problemIf(
    pods.length === 0 && dns === undefined,
    'There are no engines: give routing.pods or routing.dns',
    'routing',
    'pods',
  ),
  ...problemIf(
    pods.length > 0 && dns !== undefined,
    'Give either routing.pods or routing.dns, not both',
    'routing',
    'dns',
  ),
]

const checkKv = (kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    kv.connector === 'lmcache' && kv.lmcache.url === undefined,
    'The connector lmcache needs the URL of the LMCache coordinator',
    'kv',
    'lmcache',
    'url',
  ),
  ...problemIf(
    kv.connector === 'llamacpp-slots' && kv.directory === undefined,
    'The connector llamacpp-slots needs the folder that the pods share',
    'kv',
    'directory',
  ),
  ...(['maxStoreBytes', 'storeModule'] as const).flatMap((name) =>
    problemIf(
      kv.connector !== 'llamacpp-slots' && kv[name] !== undefined,
      'Belongs to the connector llamacpp-slots',
      'kv',
      name,
    ),
  ),
]

const checkReaper = (reaper: ParsedConfig['reaper'], kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    reaper.announceGraceMs <= kv.callTimeoutMs,
    'Must exceed kv.callTimeoutMs, else KV is removed while it is still being stored',
    'reaper',
    'announceGraceMs',
  ),
  ...problemIf(
    reaper.removalLeaseMs <= kv.callTimeoutMs,
    'Must exceed kv.callTimeoutMs, else two gateways remove the same KV at once',
    'reaper',
    'removalLeaseMs',
  ),
]

const checkResources = (
  admission: ParsedConfig['admission'],
  routing: ParsedConfig['routing'],
): readonly ConfigProblem[] => {
  const outcome = planAdmission(admission, routing.dns === undefined ? routing.pods : undefined)
  return outcome.kind === 'invalid'
    ? outcome.problems.map(({ option, message }) => ({ message, path: ['admission', option] }))
    : []
}

/** What the gateway puts on top when it tells Envoy how long a decision may take. */
const decisionMarginMs = 1000

const checkAdmission = (admission: ParsedConfig['admission'], kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    admission.requirements.length > 0 &&
      admission.maxWaitMs + kv.loadBudgetMs + decisionMarginMs > admission.messageTimeoutMs,
    'Together with kv.loadBudgetMs and a second it must not exceed admission.messageTimeoutMs, else Envoy gives a turn up that waits',
    'admission',
    'maxWaitMs',
  ),
  ...problemIf(
    kv.connector !== 'llamacpp-slots' && admission.requirements.some((text) => text.startsWith('load')),
    'Only with the connector llamacpp-slots does the gateway decide on loads: leave out what load requires',
    'admission',
    'requirements',
  ),
]
