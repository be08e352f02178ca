import type { FleetSettings } from './fleet-settings.ts'
import type { ReplayResult } from './replay-record.ts'
import type { TurnFigures } from './slots/slot-figures.ts'
import { blockTokens } from './trace.ts'
import { fleetLoad, type TraceFacts } from './trace-facts.ts'

/** All that came of a command `replay`. */
export interface ReplayReport {
  readonly facts: TraceFacts
  readonly settings: FleetSettings
  /** One for each policy. */
  readonly results: readonly ReplayResult[]
}

/** For people: what was replayed on what, and a table with a row for each policy. */
export const renderReplay = ({ facts, settings, results }: ReplayReport): string => {
  const load = fleetLoad(facts, settings)
  const store =
    settings.storeBlocks === 0
      ? 'no store'
      : `a store of ${limit(settings.storeBlocks)} blocks, which alone would have ${facts.storeHitRatio.toFixed(3)} of all`
  return [
    `trace  ${whole(facts.requests)} requests, ${whole(results[0]?.conversations ?? 0)} conversations, ${whole(facts.blocks)} blocks of ${blockTokens} tokens; block hit ratio at most ${facts.highestHitRatio.toFixed(3)}`,
    `fleet  ${settings.pods} pods of ${podSize(settings)}, ${store}`,
    `speed  ${whole(settings.prefillTokensPerSecond)} tokens/s prefill, ${whole(settings.loadTokensPerSecond)} load, ${whole(settings.decodeTokensPerSecond)} decode; time scale ${settings.timeScale}`,
    `load   ${percent(load.least)} of the fleet's prefill time with all reuse that is possible, ${percent(load.withoutReuse)} with none`,
    '',
    ...renderTable(columns, results),
    ...renderSlots(results),
  ].join('\n')
}

type Columns<Row> = readonly { readonly title: string; readonly of: (row: Row) => string }[]

const columns: Columns<ReplayResult> = [
  { title: 'policy', of: (result) => result.policy },
  { title: 'TTFT mean', of: ({ ttftMs }) => seconds(ttftMs.mean) },
  { title: 'p50', of: ({ ttftMs }) => seconds(ttftMs.p50) },
  { title: 'p90', of: ({ ttftMs }) => seconds(ttftMs.p90) },
  { title: 'p99', of: ({ ttftMs }) => seconds(ttftMs.p99) },
  { title: 'block hits', of: (result) => result.blockHitRatio.toFixed(3) },
  { title: 'in pod', of: (result) => result.podHitRatio.toFixed(3) },
  { title: 'load s', of: (result) => whole(result.loadSeconds) },
  { title: 'prefill s', of: (result) => whole(result.prefillSeconds) },
  { title: 'busy', of: (result) => percent(result.utilisation) },
  { title: 'balance', of: (result) => result.balance.toFixed(2) },
]

interface SlotRow {
  readonly policy: string
  readonly kind: 'first' | 'later'
  readonly figures: TurnFigures
}

const slotColumns: Columns<SlotRow> = [
  { title: 'policy', of: ({ policy }) => policy },
  { title: 'turns', of: ({ kind, figures }) => `${whole(figures.turns)} ${kind}` },
  { title: 'TTFT p50', of: ({ figures }) => seconds(figures.ttftMs.p50) },
  { title: 'p90', of: ({ figures }) => seconds(figures.ttftMs.p90) },
  { title: 'max', of: ({ figures }) => seconds(figures.ttftMs.max) },
  { title: 'anew', of: ({ kind, figures }) => (kind === 'first' ? '–' : `${(figures.anewShare * 100).toFixed(1)} %`) },
  { title: 'waits p50', of: ({ figures }) => seconds(figures.waitMs.p50) },
  { title: 'p90', of: ({ figures }) => seconds(figures.waitMs.p90) },
  { title: 'no slot', of: ({ figures }) => whole(figures.withoutSlot) },
]

/** Where pods have slots: of each policy, later turns and first turns of conversations. */
const renderSlots = (results: readonly ReplayResult[]): readonly string[] => {
  const rows = results.flatMap(({ policy, slots }) =>
    slots === undefined ? [] : (['later', 'first'] as const).map((kind) => ({ policy, kind, figures: slots[kind] })),
  )
  return rows.length === 0 ? [] : ['', ...renderTable(slotColumns, rows)]
}

const renderTable = <Row>(of: Columns<Row>, items: readonly Row[]): readonly string[] => {
  const rows = [of.map(({ title }) => title), ...items.map((item) => of.map((column) => column.of(item)))]
  return rows.map(([policy = '', ...cells]) =>
    [policy.padEnd(16), ...cells.map((cell) => cell.padStart(10))].join('  '),
  )
}

/** For programs. Times are in the unit that their names say; `null` for a size is unlimited. */
export const replayToJson = ({ facts, settings, results }: ReplayReport): string =>
  `${JSON.stringify({ trace: facts, fleet: settings, load: fleetLoad(facts, settings), results }, undefined, 2)}\n`

const whole = (number: number): string => Math.round(number).toLocaleString('en-US')
const podSize = ({ slots, podBlocks }: FleetSettings): string => {
  if (slots === undefined) return `${limit(podBlocks)} blocks`
  const answers = slots.waitsForAnswers ? ', turns wait for answers' : ''
  const shared = slots.processors === Number.POSITIVE_INFINITY ? '' : ` on ${slots.processors} processors`
  return `${slots.perPod} slots${shared}${answers}`
}
const limit = (blocks: number): string => (blocks === Number.POSITIVE_INFINITY ? 'unlimited' : whole(blocks))
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`
