import { parseArgs } from 'node:util'
import { type PolicyName, policyNames } from '../../src/routing/policies.ts'
import type { FleetSettings } from './fleet-settings.ts'
import { errorText } from './trace-request.ts'

/** What a replay was asked for. */
export interface ReplayOptions {
  readonly tracePath: string
  readonly settings: FleetSettings
  readonly policies: readonly PolicyName[]
  /** Where the result goes as JSON. Undefined: nowhere. */
  readonly jsonPath: string | undefined
}

export type ReplayArguments =
  | { readonly kind: 'replay'; readonly options: ReplayOptions }
  | { readonly kind: 'help' }
  /** `message` names the option and what is wrong with it. */
  | { readonly kind: 'invalid'; readonly message: string }

export const replayUsage = `context-cache-gateway replay TRACE [options]

  Replays a trace of requests on a fleet that is not there, in virtual time, with the routing, load and eviction code that serves traffic.
  TRACE is a file in the Mooncake format, gzipped or not: on each line {"timestamp": ms, "input_length": tokens, "output_length": tokens,
  "hash_ids": [one for each 512 tokens of the prompt]}.

    --policy=predicted-ttft            one of ${policyNames.join(', ')};
                                       several with commas between them, or all
    --pods=8                           how many pods there are
    --pod-blocks=2000                  blocks of KV that fit into a pod, or unlimited
    --store-blocks=unlimited           blocks of KV that fit into the persistent store; 0 is no store
    --prefill-tokens-per-second=10000  prompt tokens that a pod computes
    --load-tokens-per-second=100000    tokens whose KV a pod loads from the store
    --decode-tokens-per-second=20      tokens that a request generates
    --time-scale=1                     the trace's times are multiplied by this: 0.5 lets the requests come twice as fast
    --json=FILE                        write the result there, too
`

const flags = {
  policy: { type: 'string', default: 'predicted-ttft' },
  pods: { type: 'string', default: '8' },
  'pod-blocks': { type: 'string', default: '2000' },
  'store-blocks': { type: 'string', default: 'unlimited' },
  'prefill-tokens-per-second': { type: 'string', default: '10000' },
  'load-tokens-per-second': { type: 'string', default: '100000' },
  'decode-tokens-per-second': { type: 'string', default: '20' },
  'time-scale': { type: 'string', default: '1' },
  json: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

type NumberFlag = Exclude<keyof typeof flags, 'policy' | 'json' | 'help'>

const maxPods = 1000

class InvalidOption extends Error {}

/** Reads what stands behind `replay` on the command line. */
export const parseReplayArguments = (args: readonly string[]): ReplayArguments => {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: flags, allowPositionals: true })
    if (values.help) return { kind: 'help' }
    const [tracePath, ...surplus] = positionals
    if (tracePath === undefined) throw new InvalidOption('replay needs a trace file')
    if (surplus.length > 0) throw new InvalidOption(`replay takes one trace file, and "${surplus[0]}" is another`)
    const read = (name: NumberFlag, words: string, parse: (text: string) => number | undefined): number => {
      const value = parse(values[name])
      if (value === undefined) throw new InvalidOption(`--${name} must be ${words}, not "${values[name]}"`)
      return value
    }
    const blockLimit = (name: NumberFlag) => read(name, 'a whole number from 0, or unlimited', parseBlockLimit)
    const rate = (name: NumberFlag) => read(name, 'a number above 0', parseAboveZero)
    const settings: FleetSettings = {
      pods: read('pods', `a whole number from 1 to ${maxPods}`, parsePods),
      podBlocks: blockLimit('pod-blocks'),
      storeBlocks: blockLimit('store-blocks'),
      prefillTokensPerSecond: rate('prefill-tokens-per-second'),
      loadTokensPerSecond: rate('load-tokens-per-second'),
      decodeTokensPerSecond: rate('decode-tokens-per-second'),
      timeScale: rate('time-scale'),
    }
    const policies = policyList(values.policy)
    return { kind: 'replay', options: { tracePath, settings, policies, jsonPath: values.json } }
  } catch (error) {
    // Of parseArgs, too: it throws for options that do not exist.
    return { kind: 'invalid', message: errorText(error) }
  }
}

const parsePods = (text: string): number | undefined => {
  const count = parseWhole(text)
  return count !== undefined && count >= 1 && count <= maxPods ? count : undefined
}

const parseBlockLimit = (text: string): number | undefined =>
  text === 'unlimited' ? Number.POSITIVE_INFINITY : parseWhole(text)

const parseWhole = (text: string): number | undefined => (/^[0-9]{1,15}$/.test(text) ? Number(text) : undefined)

const parseAboveZero = (text: string): number | undefined =>
  /^[0-9]{0,15}(\.[0-9]{1,30})?$/.test(text) && Number(text) > 0 ? Number(text) : undefined

const policyList = (text: string): readonly PolicyName[] => {
  if (text === 'all') return policyNames
  const names = text.split(',').map((name) => {
    const known = policyNames.find((policy) => policy === name.trim())
    if (known === undefined) {
      throw new InvalidOption(`--policy knows ${policyNames.join(', ')} and all, not "${name.trim()}"`)
    }
    return known
  })
  return [...new Set(names)]
}
