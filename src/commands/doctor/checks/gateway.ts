import { type Check, checkOf, type Problem } from '../finding.ts'
import type { GatewayFacts } from '../gateway-facts.ts'

const ready = checkOf('gateway', 'gateway', ({ ready: isReady, reasons, pods }): readonly Problem[] => [
  ...(isReady
    ? []
    : [
        {
          severity: 'error',
          problem: `The gateway is not ready: ${reasons.join(', ')}.`,
          why: 'Turns go past it, and contexts are refused.',
          fix: 'see its log; engines that answer GET /health',
        } as const,
      ]),
  ...pods
    .filter((pod) => !pod.ready && isReady)
    .map(
      ({ address, pool }): Problem => ({
        severity: 'warning',
        problem: `The pod ${address} of pool ${pool} is not ready.`,
        why: 'Its sessions go to other pods, which load or compute their KV.',
        fix: `GET http://${address}/health answers 200 within routing.healthTimeoutMs`,
      }),
    ),
])

/** Kinds of warnings that mean that sessions are of no use, or not apart. */
const severe = [
  'engine_reuses_nothing',
  'engine_saves_nothing',
  'engine_shares_kv',
  'engine_unauthorized',
  'store_unavailable',
]

const ofEngines = ['engine_reuses_nothing', 'engine_saves_nothing', 'engine_shares_kv']
/** Those of pods that are not ready. */
const repeated = 'engine_unavailable'

const reuse = checkOf('reuse', 'gateway', ({ warnings }) =>
  warnings.filter(({ kind }) => ofEngines.includes(kind)).map(toProblem),
)

const warned = checkOf('gateway-warnings', 'gateway', ({ warnings }) =>
  warnings.filter(({ kind }) => ![repeated, ...ofEngines].includes(kind)).map(toProblem),
)

const toProblem = ({ kind, subject, text }: GatewayFacts['warnings'][number]): Problem => ({
  severity: severe.includes(kind) ? 'error' : 'warning',
  problem: `${kind}${subject === '' ? '' : ` (${subject})`}: ${text}`,
  why: whys[kind] ?? 'The gateway itself warns of it.',
  fix: `what the warning says; see ${kind} in docs/metrics.md and docs/isolation.md`,
})

const whys: Readonly<Record<string, string>> = {
  engine_reuses_nothing: 'Turns wait for loads of KV that the engine then computes again.',
  engine_saves_nothing: 'KV of turns is lost with the slot, and every turn computes its whole prompt.',
  engine_shares_kv: 'A request may start from KV of another tenant, and answers faster for who guesses its prompt.',
  store_unavailable: 'Turns run without their sessions, and contexts are refused.',
}

export const gatewayChecks: readonly Check[] = [ready, reuse, warned]
