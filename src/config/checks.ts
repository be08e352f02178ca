import { z } from 'zod'
import { planAdmission } from '../admission/plan/plan-admission.ts'
import { storeOf } from './config.ts'
import type { ParsedConfig } from './schema.ts'

/** A problem of the configuration. Never quotes a value, which may be a secret. */
export interface ConfigProblem {
  readonly message: string
  /** The option; empty: the configuration as a whole. */
  readonly path: readonly string[]
}

/** All problems as text, with the option of each. */
export const renderProblems = (problems: readonly ConfigProblem[]): string => z.prettifyError({ issues: problems })

/** Checks options against each other. Takes only the groups that are valid by themselves, so that all problems are reported at once. */
export const checkAcrossOptions = (groups: Partial<ParsedConfig>): readonly ConfigProblem[] => {
  const { sessions, tenant, routing, engines, kv, reaper, admission } = groups
  return [
    ...(sessions === undefined ? [] : checkSessions(sessions)),
    ...(sessions === undefined || tenant === undefined ? [] : checkSecret(sessions, tenant)),
    ...(routing === undefined ? [] : checkRouting(routing)),
    ...(engines === undefined ? [] : checkEngines(engines)),
    ...(kv === undefined ? [] : checkKv(kv)),
    ...(kv === undefined || reaper === undefined ? [] : checkReaper(reaper, kv)),
    ...(admission === undefined || routing === undefined ? [] : checkResources(admission, routing)),
    ...(admission === undefined || kv === undefined ? [] : checkAdmission(admission, kv)),
  ]
}

const problemIf = (isWrong: boolean, option: string, message: string): readonly ConfigProblem[] =>
  isWrong ? [{ message, path: option.split('.') }] : []

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

const checkRouting = ({ pods, dns }: ParsedConfig['routing']): readonly ConfigProblem[] => [
  ...problemIf(
    pods.length === 0 && dns === undefined,
    'routing.pods',
    'There are no engines: give routing.pods or routing.dns',
  ),
  ...problemIf(
    pods.length > 0 && dns !== undefined,
    'routing.dns',
    'Give either routing.pods or routing.dns, not both',
  ),
]

const checkEngines = (engines: ParsedConfig['engines']): readonly ConfigProblem[] =>
  (['caFile', 'serverName'] as const).flatMap((name) =>
    problemIf(!engines.https && engines[name] !== undefined, `engines.${name}`, 'Belongs to engines.https'),
  )

const checkKv = (kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    kv.connector === 'lmcache' && kv.lmcache.url === undefined,
    'kv.lmcache.url',
    'The connector lmcache needs the URL of the LMCache coordinator',
  ),
  ...problemIf(
    kv.connector === 'llamacpp-slots' && kv.directory === undefined,
    'kv.directory',
    'The connector llamacpp-slots needs the folder that the pods share',
  ),
  ...(['maxStoreBytes', 'storeModule'] as const).flatMap((name) =>
    problemIf(
      kv.connector !== 'llamacpp-slots' && kv[name] !== undefined,
      `kv.${name}`,
      'Belongs to the connector llamacpp-slots',
    ),
  ),
]

const checkReaper = (reaper: ParsedConfig['reaper'], kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    reaper.announceGraceMs <= kv.callTimeoutMs,
    'reaper.announceGraceMs',
    'Must exceed kv.callTimeoutMs, else KV is removed while it is still being stored',
  ),
  ...problemIf(
    reaper.removalLeaseMs <= kv.callTimeoutMs,
    'reaper.removalLeaseMs',
    'Must exceed kv.callTimeoutMs, else two gateways remove the same KV at once',
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

/** What the gateway adds when it tells Envoy how long a decision may take. */
const decisionMarginMs = 1000

const checkAdmission = (admission: ParsedConfig['admission'], kv: ParsedConfig['kv']): readonly ConfigProblem[] => [
  ...problemIf(
    admission.requirements.length > 0 &&
      admission.maxWaitMs + kv.loadBudgetMs + decisionMarginMs > admission.messageTimeoutMs,
    'admission.maxWaitMs',
    'Together with kv.loadBudgetMs and a second it must not exceed admission.messageTimeoutMs, else Envoy gives up turns that wait',
  ),
  ...problemIf(
    kv.connector !== 'llamacpp-slots' && admission.requirements.some((text) => text.startsWith('load')),
    'admission.requirements',
    'Only with the connector llamacpp-slots does the gateway decide on loads: remove the requirements of load',
  ),
]
