import { forwardingRoutes } from '../envoy-facts.ts'
import type { ExtProc } from '../envoy-schema.ts'
import type { Check, Problem } from '../finding.ts'
import { longestLoad, type Settings } from '../settings.ts'
import { doorCheck } from './door-check.ts'

const routeDefaultSeconds = 15
/** Shorter than many answers. */
const leastRouteSeconds = 60

const decision = doorCheck('decision-timeouts', 'all', ({ extProcs, manager }, { settings }) => {
  const idle = manager.stream_idle_timeout
  const { messageTimeoutMs } = settings.admission
  const problems = extProcs.flatMap(({ config }) => decisionTimeouts(config, settings))
  if (idle === 0 || idle * 1000 > messageTimeoutMs) return problems
  return [
    ...problems,
    {
      severity: 'error',
      problem: `stream_idle_timeout is ${idle} s; a decision may take admission.messageTimeoutMs, ${messageTimeoutMs}.`,
      why: 'Turns that wait for a slot or for KV are cut off with 504.',
      fix: 'HTTP connection manager: stream_idle_timeout: 600s',
    },
  ]
})

const decisionTimeouts = (extProc: ExtProc, settings: Settings): readonly Problem[] => {
  const { message_timeout: least, max_message_timeout: most } = extProc
  const longest = Math.max(least, most)
  const { admission, sessions } = settings
  const { loadBudgetMs, pool } = longestLoad(settings)
  const problems: Problem[] = []
  const field = most > 0 ? 'max_message_timeout' : 'message_timeout'
  if (longest * 1000 <= loadBudgetMs)
    problems.push({
      severity: 'error',
      problem: `Envoy waits ${longest} s at most for a decision (${field}); kv.loadBudgetMs of pool ${pool} is ${loadBudgetMs}.`,
      why: 'A long load of KV is cut off, and its turn computes everything again, or fails.',
      fix: `ext_proc: max_message_timeout: ${admission.messageTimeoutMs / 1000}s`,
    })
  else if (longest * 1000 < admission.messageTimeoutMs)
    problems.push({
      severity: 'error',
      problem: `Envoy waits ${longest} s at most for a decision (${field}); admission.messageTimeoutMs is ${admission.messageTimeoutMs}.`,
      why: 'Turns that wait for a slot longer than that are cut off.',
      fix: `ext_proc: max_message_timeout: ${admission.messageTimeoutMs / 1000}s (or admission.messageTimeoutMs: ${longest * 1000})`,
    })
  if (least * 1000 <= sessions.commandTimeoutMs)
    problems.push({
      severity: 'error',
      problem: `message_timeout of ext_proc is ${least} s; sessions.commandTimeoutMs is ${sessions.commandTimeoutMs}.`,
      why: 'While Redis is slow, Envoy gives turns up before the gateway goes on without it.',
      fix: 'ext_proc: message_timeout: 2s',
    })
  return problems
}

const answers = doorCheck('answer-timeouts', 'all', (door, { settings }) => {
  const { leaseSeconds } = settings.turns
  const routes = forwardingRoutes(door).map(({ action, label }) => ({
    label,
    timeout: action.timeout ?? routeDefaultSeconds,
    isDefault: action.timeout === undefined,
    idle: action.idle_timeout ?? door.manager.stream_idle_timeout,
  }))
  const problems: Problem[] = []
  const short = routes.filter(({ timeout }) => timeout > 0 && timeout < leastRouteSeconds)
  const endless = routes.filter(({ timeout }) => timeout === 0 || timeout >= leaseSeconds)
  const silent = routes.filter(({ idle, timeout }) => idle > 0 && (timeout === 0 || idle < timeout))
  const [shortest, longest, first] = [short[0], endless[0], silent[0]]
  if (shortest !== undefined)
    problems.push({
      severity: 'error',
      problem: `The timeout of ${short.length} routes is ${shortest.timeout} s${shortest.isDefault ? ' (the default)' : ''} (first: ${shortest.label}).`,
      why: 'Longer answers are cut off with 504, streams in the middle.',
      fix: 'route: timeout: 600s',
    })
  if (longest !== undefined)
    problems.push({
      severity: 'error',
      problem: `The timeout of ${endless.length} routes is ${longest.timeout === 0 ? 'off' : `${longest.timeout} s`} (first: ${longest.label}); turns.leaseSeconds is ${leaseSeconds}.`,
      why: 'The lease of a turn ends before its answer: another turn of its session starts beside it, or its KV is removed.',
      fix: `turns.leaseSeconds above the timeout, or route: timeout: ${leaseSeconds - 60}s`,
    })
  if (first !== undefined && longest === undefined)
    problems.push({
      severity: 'warning',
      problem: `stream_idle_timeout is ${first.idle} s, the timeout of ${silent.length} routes is longer (first: ${first.label}, ${first.timeout} s).`,
      why: 'A prefill may keep an answer silent for minutes, and its turn is cut off.',
      fix: `HTTP connection manager: stream_idle_timeout: ${first.timeout}s`,
    })
  return problems
})

const slowClients = doorCheck('slow-clients', 'all', ({ manager }) => {
  // The time of a whole request, its headers included.
  if (manager.request_timeout > 0) return []
  const missing = [...(manager.request_headers_timeout > 0 ? [] : ['request_headers_timeout']), 'request_timeout']
  return {
    severity: 'warning',
    problem: `The HTTP connection manager lacks ${missing.join(' and ')}.`,
    why: 'Requests whose headers or bodies do not come hold memory for as long as the client likes.',
    fix: missing.map((name) => `${name}: ${name === 'request_timeout' ? '60s' : '10s'}`).join('; '),
  }
})

export const timeoutChecks: readonly Check[] = [decision, answers, slowClients]
