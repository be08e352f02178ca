/**
 * What has been seen of something that costs a fixed time and a time for each unit: sums over observations that were weighted and have
 * faded. `count` is how many there were, in all.
 */
export interface LineEvidence {
  readonly count: number
  readonly weight: number
  readonly x: number
  readonly y: number
  readonly xx: number
  readonly xy: number
}

/** `fixed + perUnit * units`, milliseconds; neither part is ever negative. */
export interface CostLine {
  readonly fixed: number
  readonly perUnit: number
}

/** What one observation takes of the weight of all that came before: about the last 50 count. */
const fading = 0.02
/** From the second handful on, an observation counts as no more, and no less, than these multiples of what was expected. */
const trustedFrom = 5
const mostAboveExpected = 4
const mostBelowExpected = 1 / 8
/**
 * What delays an observation (a queue that nobody knew of, a busy machine) only ever makes it longer. So one that is longer than expected
 * says less than one that is shorter, and the line settles near the undisturbed ones.
 */
const weightOfLonger = 0.2
const weightOfShorter = 0.8
/** Variance over squared mean below which the units were too much alike to tell the fixed part from the part per unit. */
const leastSpread = 0.01
const leastPerUnit = 1e-12

const noEvidence: LineEvidence = { count: 0, weight: 0, x: 0, y: 0, xx: 0, xy: 0 }

/** A cost that is learnt from observations: the newest count most, outliers little, and its memory is six numbers. */
export class LearntLine {
  readonly #initial: CostLine
  #evidence: LineEvidence
  #line: CostLine

  /** `initial` holds until the first observation; its fixed part for as long as the observations cannot tell. */
  constructor(initial: CostLine, evidence: LineEvidence = noEvidence) {
    this.#initial = initial
    this.#evidence = evidence
    this.#line = fitLine(initial, evidence)
  }

  get evidence(): LineEvidence {
    return this.#evidence
  }

  /** Milliseconds for so many units; 0 for none. */
  at(units: number): number {
    return units <= 0 ? 0 : this.#line.fixed + this.#line.perUnit * units
  }

  /** What the average observation took, milliseconds; undefined before the first. */
  get mean(): number | undefined {
    return this.#evidence.weight > 0 ? this.#evidence.y / this.#evidence.weight : undefined
  }

  /** `trust`, above 0 and up to 1: how much of the observation is certain. */
  observe(units: number, milliseconds: number, trust = 1): void {
    const { count, weight, x, y, xx, xy } = this.#evidence
    const expected = this.at(units)
    const seen =
      count < trustedFrom
        ? milliseconds
        : Math.min(Math.max(milliseconds, expected * mostBelowExpected), expected * mostAboveExpected)
    // What is hardly trusted must not push out what was.
    const kept = 1 - fading * trust
    const own = trust * (seen > expected ? weightOfLonger : weightOfShorter)
    this.#evidence = {
      count: count + 1,
      weight: weight * kept + own,
      x: x * kept + own * units,
      y: y * kept + own * seen,
      xx: xx * kept + own * units * units,
      xy: xy * kept + own * units * seen,
    }
    this.#line = fitLine(this.#initial, this.#evidence)
  }
}

/** Least squares, within what is possible: no part is negative. */
const fitLine = (initial: CostLine, evidence: LineEvidence): CostLine => {
  const { weight, x, y, xx, xy } = evidence
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
  if (perUnit <= 0 || fixed < 0) return { fixed: 0, perUnit: Math.max(leastPerUnit, xy / xx) }
  return { fixed, perUnit }
}
