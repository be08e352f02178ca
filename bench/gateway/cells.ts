import { createHash } from 'node:crypto'
import { type GatewayCase, hasCase, targetName, type Wiring } from './targets.ts'

/** What is sent in one measurement. Without a rate, each of 32 connections sends when its last request is answered. */
export const loads = {
  'closed 2k': { bodyBytes: 2048 },
  'closed 100k': { bodyBytes: 102_400 },
  '500 rps': { bodyBytes: 2048, rate: 500 },
  stream: { bodyBytes: 2048, stream: true },
} as const
export type LoadName = keyof typeof loads
export const loadNames = ['closed 2k', 'closed 100k', '500 rps', 'stream'] as const satisfies readonly LoadName[]

/** One measurement of every round. */
export interface Cell {
  /** `closed 2k/ext_proc redis`: what `--only` is compared with. */
  readonly name: string
  readonly target: string
  readonly load: LoadName
}

const references = ['floor', 'go'] as const

const withSessions = [
  'memory',
  'memory by header',
  'memory by member',
  'redis',
  'redis by header',
  'redis by member',
  'redis traced',
] as const

const gatewayTargets: Readonly<Record<LoadName, readonly GatewayCase[]>> = {
  'closed 2k': [
    'no session',
    'no session, names read',
    'constants',
    ...withSessions,
    'memory kept',
    'memory continued 2k',
    'redis continued 2k',
  ],
  'closed 100k': [
    'no session',
    'no session, names read',
    'constants',
    ...withSessions,
    'spliced',
    'memory continued 100k',
    'redis continued 100k',
  ],
  '500 rps': ['redis'],
  stream: ['redis'],
}

export const cellName = (load: LoadName, target: string): string => `${load}/${target}`

/** All measurements of a round; those that are compared stand next to each other. */
export const listCells = (wirings: readonly Wiring[], only: readonly string[]): readonly Cell[] =>
  loadNames
    .flatMap((load) => {
      const gateways = wirings.flatMap((wiring) =>
        gatewayTargets[load].filter((name) => hasCase(wiring, name)).map((name) => targetName(wiring, name)),
      )
      return [...references, ...gateways].map((target) => ({ name: cellName(load, target), target, load }))
    })
    .filter(({ name }) => only.length === 0 || only.some((part) => name.includes(part)))

/**
 * The order of one round: the measurements of a load next to each other, in another order each time, because a busy
 * case slows the machine for the case after it. Every run uses the same orders.
 */
export const orderOfRound = (cells: readonly Cell[], round: number): readonly Cell[] => {
  const rank = ({ name }: Cell): string => createHash('sha256').update(`${round} ${name}`).digest('hex')
  return loadNames.flatMap((load) =>
    cells.filter((cell) => cell.load === load).sort((one, other) => (rank(one) < rank(other) ? -1 : 1)),
  )
}
