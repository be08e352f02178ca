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

/** What is known of a combination of values, the last of which it was found by; one step for each label. */
interface Step<Cell> {
  readonly next: Map<string, Step<Cell>>
  cell: Cell | undefined
}

/** `create` makes the cell of a combination that is asked for the first time. */
export const createLabelledCells = <Cell extends object>(
  ranges: Readonly<Record<string, LabelRange>>,
  create: () => Cell,
): LabelledCells<Cell> => {
  const names = Object.keys(ranges)
  const bounds = Object.entries(ranges).map(([label, range]) => ({ label, bound: createLabelBound(range) }))
  const root: Step<Cell> = { next: new Map(), cell: undefined }
  const cells: (readonly [LabelValues, Cell])[] = []

  const find = (labels: LabelValues): Cell | undefined => {
    let step: Step<Cell> | undefined = root
    for (const name of names) step = step?.next.get(labels[name] ?? '')
    return step?.cell
  }

  const add = (labels: LabelValues): Cell => {
    let step = root
    for (const name of names) {
      const value = labels[name] ?? ''
      const next: Step<Cell> = step.next.get(value) ?? { next: new Map(), cell: undefined }
      step.next.set(value, next)
      step = next
    }
    const cell = create()
    step.cell = cell
    cells.push([labels, cell])
    return cell
  }

  return {
    cell: (labels) => {
      const known = find(labels)
      if (known !== undefined) return known
      // Only values within their ranges are remembered.
      const bounded = Object.fromEntries(bounds.map(({ label, bound }) => [label, bound(labels[label] ?? '')]))
      return find(bounded) ?? add(bounded)
    },
    all: () => cells,
  }
}
