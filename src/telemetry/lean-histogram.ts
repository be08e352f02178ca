import { Histogram, type MetricObjectWithValues, type MetricValueWithName, type Registry } from 'prom-client'
import { createLabelledCells, type LabelledCells, type LabelValues } from './labelled-cells.ts'
import type { LabelRange } from './metric-definitions.ts'

interface Cell {
  /** Observations in each bucket alone, the last one for those above all bounds. */
  readonly counts: Float64Array
  sum: number
}

/** A histogram that prom-client renders, and whose observations cost a fraction of its own: a look-up and two additions. */
export class LeanHistogram extends Histogram<string> {
  readonly #name: string
  /** Names the type and the like, which prom-client does not export. */
  readonly #empty: Histogram<string>
  readonly #bounds: readonly number[]
  readonly #cells: LabelledCells<Cell>

  constructor(options: {
    readonly name: string
    readonly help: string
    readonly ranges: Readonly<Record<string, LabelRange>>
    /** Upper bounds, rising. */
    readonly buckets: readonly number[]
    readonly registry: Registry
  }) {
    const { name, help, ranges, buckets, registry } = options
    const settings = { name, help, labelNames: Object.keys(ranges), buckets: [...buckets] }
    super({ ...settings, registers: [registry] })
    this.#name = name
    this.#empty = new Histogram({ ...settings, registers: [] })
    this.#bounds = buckets
    this.#cells = createLabelledCells(ranges, () => ({ counts: new Float64Array(buckets.length + 1), sum: 0 }))
  }

  /** Counts one value. */
  record(labels: LabelValues, value: number): void {
    const cell = this.#cells.cell(labels)
    let bucket = 0
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] ?? 0)) bucket += 1
    cell.counts[bucket] = (cell.counts[bucket] ?? 0) + 1
    cell.sum += value
  }

  /** What prom-client's registry renders. */
  async getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const values = [...this.#cells.all()].flatMap(([labels, cell]) => this.#valuesOf(labels, cell))
    return { ...(await this.#empty.get()), values }
  }

  override get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return this.getForPromString()
  }

  #valuesOf(labels: LabelValues, { counts, sum }: Cell): MetricValueWithName<string>[] {
    let seen = 0
    const buckets = [...counts].map((count, index) => {
      seen += count
      const le = this.#bounds[index] ?? '+Inf'
      return { metricName: `${this.#name}_bucket`, labels: { le, ...labels }, value: seen }
    })
    return [
      ...buckets,
      { metricName: `${this.#name}_sum`, labels: { ...labels }, value: sum },
      { metricName: `${this.#name}_count`, labels: { ...labels }, value: seen },
    ]
  }
}
