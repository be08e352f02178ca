import { parseFlags } from '../../src/commandline/parse-flags.ts'
import { type PolicyName, policyNames } from '../../src/routing/policies.ts'
import type { FleetSettings } from './fleet-settings.ts'
import { ReplayError } from './trace.ts'

/** What a replay was asked for. */
export interface ReplayOptions {
  readonly tracePath: string
  readonly settings: FleetSettings
  readonly policies: readonly PolicyName[]
  /** Where the result goes as JSON. Undefined: nowhere. */
  readonly jsonPath: string | undefined
}

const flags = {
  policy: { type: 'string', default: 'predicted-ttft' },
  pods: { type: 'string', default: '8' },
  'pod-blocks': { type: 'string', default: '2000' },
  'store-blocks': { type: 'string', default: 'unlimited' },
  'prefill-tokens-per-second': { type: 'string', default: '10000' },
  'load-tokens-per-second': { type: 'string', default: '100000' },
  'decode-tokens-per-second': { type: 'string', default: '20' },
  slots: { type: 'string', default: 'unlimited' },
  processors: { type: 'string', default: 'unlimited' },
  'turn-overhead-ms': { type: 'string', default: '0' },
  'wait-for-answers': { type: 'boolean', default: false },
  'time-scale': { type: 'string', default: '1' },
  json: { type: 'string' },
} as const

type NumberFlag = Exclude<keyof typeof flags, 'policy' | 'json' | 'wait-for-answers'>

/** Reads what stands behind `replay` on the command line. @throws ReplayError */
export const parseReplayOptions = (args: readonly string[]): ReplayOptions => {
  const parsed = parseFlags(args, flags, { maxPositionals: 1 })
  if (parsed.kind === 'invalid') throw invalid(parsed.message)
  const { values, positionals } = parsed
  const [tracePath] = positionals
  if (tracePath === undefined) throw invalid('replay needs a trace file')
  const read = (name: NumberFlag, words: string, pattern: RegExp): number => {
    const text = values[name]
    if (!pattern.test(text)) throw invalid(`--${name} must be ${words}, not "${text}"`)
    return text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
  }
  const blockLimit = (name: NumberFlag) => read(name, 'a whole number from 0, or unlimited', /^(\d{1,15}|unlimited)$/)
  const count = (name: NumberFlag) =>
    read(name, 'a whole number from 1 to 1000, or unlimited', /^([1-9]\d{0,2}|1000|unlimited)$/)
  const perPod = count('slots')
  const processors = count('processors')
  const turnOverheadMs = read('turn-overhead-ms', 'a number of milliseconds from 0', /^\d{1,6}(\.\d{1,30})?$/)
  const waitsForAnswers = values['wait-for-answers']
  const hasSlots = perPod < Number.POSITIVE_INFINITY
  if (!hasSlots && (processors < Number.POSITIVE_INFINITY || turnOverheadMs > 0 || waitsForAnswers))
    throw invalid('--processors, --turn-overhead-ms and --wait-for-answers go with --slots')
  const rate = (name: NumberFlag) => read(name, 'a number above 0', /^(?=.*[1-9])\d{0,15}(\.\d{1,30})?$/)
  return {
    tracePath,
    jsonPath: values.json,
    policies: policyList(values.policy),
    settings: {
      pods: read('pods', 'a whole number from 1 to 1000', /^([1-9]\d{0,2}|1000)$/),
      podBlocks: blockLimit('pod-blocks'),
      storeBlocks: blockLimit('store-blocks'),
      prefillTokensPerSecond: rate('prefill-tokens-per-second'),
      loadTokensPerSecond: rate('load-tokens-per-second'),
      decodeTokensPerSecond: rate('decode-tokens-per-second'),
      timeScale: rate('time-scale'),
      slots: hasSlots ? { perPod, processors, turnOverheadMs, waitsForAnswers } : undefined,
    },
  }
}

const invalid = (message: string): ReplayError => new ReplayError(`${message}\nTry: context-cache-gateway help replay`)

const policyList = (text: string): readonly PolicyName[] => {
  if (text === 'all') return policyNames
  const names = text.split(',').map((name) => {
    const known = policyNames.find((policy) => policy === name.trim())
    if (known === undefined) throw invalid(`--policy knows ${policyNames.join(', ')} and all, not "${name.trim()}"`)
    return known
  })
  return [...new Set(names)]
}
