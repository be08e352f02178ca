import { createLabelBound } from './bounded-labels.ts'
import type { LabelRange } from './metric-definitions.ts'

export type LabelValues = Readonly<Record<string, string>>

/** One cell for each combination of label values, found without sorting or copying labels: metrics are told of several times in every turn. */
export interface LabelledCells<Cell> {
  /** The cell of these values; those beyond a label's range share the cell of `other`. */
  cell(labels: LabelValues): Cell
  /** All cells that were asked for, with their labels. */
  all(): Iterable<readonly [LabelValues, Cell]>
}

/** `create` makes the cell of a combination that is asked for the first time. */
export const createLabelledCells = <Cell>(
  ranges: Readonly<Record<string, LabelRange>>,
  create: () => Cell,
): LabelledCells<Cell> => {
  const bounds = Object.entries(ranges).map(([label, range]) => ({ label, bound: createLabelBound(range) }))
  const cells = new Map<string, readonly [LabelValues, Cell]>()

  const [first, ...others] = bounds
  const keyOf = (labels: LabelValues): string => {
    let key = first === undefined ? '' : (labels[first.label] ?? '')
    for (const { label } of others) key += `\n${labels[label] ?? ''}`
    return key
  }

  return {
    cell: (labels) => {
      const known = cells.get(keyOf(labels))
      if (known !== undefined) return known[1]
      const bounded = Object.fromEntries(bounds.map(({ label, bound }) => [label, bound(labels[label] ?? '')]))
      const boundedKey = keyOf(bounded)
      const found = cells.get(boundedKey)
      if (found !== undefined) return found[1]
      const created = create()
      cells.set(boundedKey, [bounded, created])
      return created
    },
    all: () => cells.values(),
  }
}
