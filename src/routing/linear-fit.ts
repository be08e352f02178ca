/** Weighted and faded sums over observations; `count` is how many there were in all. */
export interface FitSums {
  readonly count: number
  readonly weight: number
  readonly x: number
  readonly y: number
  readonly xx: number
  readonly xy: number
}

/** `fixed + perUnit * units`, milliseconds; neither part is negative. */
export interface CostLine {
  readonly fixed: number
  readonly perUnit: number
}

/** The share of earlier weight that one observation replaces: about the last 50 observations count. */
const fading = 0.02
/** After this many observations, a new one is limited to these multiples of its expected value. */
const clampedAfter = 5
const mostAboveExpected = 4
const mostBelowExpected = 1 / 8
/**
 * An unknown queue or a busy machine only ever makes an observation longer. So one that is longer than expected counts less than one that is
 * shorter, and the line settles near the undisturbed ones.
 */
const weightOfLonger = 0.2
const weightOfShorter = 0.8
/** With a variance over squared mean below this, the units are too similar to separate the fixed part from the part per unit. */
const leastSpread = 0.01
const leastPerUnit = 1e-12

const noSums: FitSums = { count: 0, weight: 0, x: 0, y: 0, xx: 0, xy: 0 }

/** Fits a line to observations by least squares with fading: recent ones count most, outliers little. */
export class LinearFit {
  readonly #initial: CostLine
  #sums: FitSums
  #line: CostLine

  /** `initial` holds until the first observation, its fixed part until the observations tell both parts. */
  constructor(initial: CostLine, sums: FitSums = noSums) {
    this.#initial = initial
    this.#sums = sums
    this.#line = fitLine(initial, sums)
  }

  get sums(): FitSums {
    return this.#sums
  }

  /** Milliseconds for `units`; 0 for none. */
  at(units: number): number {
    return units <= 0 ? 0 : this.#line.fixed + this.#line.perUnit * units
  }

  /** Milliseconds of the average observation; undefined before the first. */
  get mean(): number | undefined {
    return this.#sums.weight > 0 ? this.#sums.y / this.#sums.weight : undefined
  }

  observe(units: number, milliseconds: number): void {
    const { count, weight, x, y, xx, xy } = this.#sums
    const expected = this.at(units)
    const seen =
      count < clampedAfter
        ? milliseconds
        : Math.min(Math.max(milliseconds, expected * mostBelowExpected), expected * mostAboveExpected)
    const kept = 1 - fading
    const own = seen > expected ? weightOfLonger : weightOfShorter
    this.#sums = {
      count: count + 1,
      weight: weight * kept + own,
      x: x * kept + own * units,
      y: y * kept + own * seen,
      xx: xx * kept + own * units * units,
      xy: xy * kept + own * units * seen,
    }
    this.#line = fitLine(this.#initial, this.#sums)
  }
}

const fitLine = (initial: CostLine, { weight, x, y, xx, xy }: FitSums): CostLine => {
  if (!(weight > 0 && x > 0)) return initial
  const meanX = x / weight
  const meanY = y / weight
  const variance = xx / weight - meanX * meanX
  if (variance < leastSpread * meanX * meanX) {
    const fixed = Math.min(initial.fixed, meanY)
    return { fixed, perUnit: Math.max(leastPerUnit, (meanY - fixed) / meanX) }
  }
  const perUnit = (xy / weight - meanX * meanY) / variance
  const fixed = meanY - perUnit * meanX
  return perUnit <= 0 || fixed < 0 ? { fixed: 0, perUnit: Math.max(leastPerUnit, xy / xx) } : { fixed, perUnit }
}
