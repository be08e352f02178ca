import { createHash } from 'node:crypto'
import { type GatewayVariant, targetName } from './targets.ts'

/** What is sent in one measurement. */
export type Load =
  /** As many requests as are answered. */
  | { readonly kind: 'closed'; readonly bodyBytes: number }
  /** Requests by the clock. */
  | { readonly kind: 'paced'; readonly bodyBytes: number; readonly ratePerSecond: number }
  /** Streamed answers. */
  | { readonly kind: 'stream'; readonly bodyBytes: number }

/** One measurement of every round. */
export interface Cell {
  /** `closed 2k/redis`: what `--only` is compared with. */
  readonly name: string
  readonly target: string
  readonly load: Load
}

const small = 2048
const large = 102_400

export const loads = {
  'closed 2k': { kind: 'closed', bodyBytes: small },
  'closed 100k': { kind: 'closed', bodyBytes: large },
  '500 rps': { kind: 'paced', bodyBytes: small, ratePerSecond: 500 },
  stream: { kind: 'stream', bodyBytes: small },
} as const satisfies Readonly<Record<string, Load>>
export type LoadName = keyof typeof loads

const references = ['floor', 'go'] as const

const gatewayTargets = {
  'closed 2k': ['no session', 'memory', 'redis', 'redis, spliced'],
  'closed 100k': ['redis', 'redis, spliced'],
  '500 rps': ['memory', 'redis'],
  stream: ['redis'],
} as const satisfies Readonly<Record<LoadName, readonly Parameters<typeof targetName>[0][]>>

export const loadNames = ['closed 2k', 'closed 100k', '500 rps', 'stream'] as const

export const cellName = (load: LoadName, target: string): string => `${load}/${target}`

/** All measurements of a round, those that are compared next to each other. */
export const listCells = (variants: readonly GatewayVariant[], only: readonly string[]): readonly Cell[] =>
  loadNames
    .flatMap((load) => {
      const ofVariants = variants.flatMap((variant) => gatewayTargets[load].map((name) => targetName(name, variant)))
      return [...references, ...ofVariants].map((target) => ({
        name: cellName(load, target),
        target,
        load: loads[load],
      }))
    })
    .filter(({ name }) => only.length === 0 || only.some((part) => name.includes(part)))

/**
 * One round's order: the measurements of a load next to each other, each time in another order, since a busy case leaves a slower machine to the one
 * that follows it. The same order in every run.
 */
export const orderOfRound = (cells: readonly Cell[], round: number): readonly Cell[] => {
  const rank = ({ name }: Cell): string => createHash('sha256').update(`${round} ${name}`).digest('hex')
  return loadNames.flatMap((load) =>
    cells.filter((cell) => cell.load === loads[load]).sort((one, other) => (rank(one) < rank(other) ? -1 : 1)),
  )
}
