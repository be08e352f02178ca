import { readJson } from '../../json/read-json.ts'
import type { LineEvidence } from './learnt-line.ts'

/** What is known of one model. */
export interface ModelCosts {
  readonly model: string
  readonly prefill: LineEvidence
  readonly load: LineEvidence
}

const version = 1

/** A text that {@link decodeCosts} reads again. */
export const encodeCosts = (models: readonly ModelCosts[]): string =>
  JSON.stringify({
    version,
    models: models.map(({ model, prefill, load }) => [model, numbersOf(prefill), numbersOf(load)]),
  })

/** Undefined for every text that is not of this form: a profile of another version, or a damaged one, is as good as none. */
export const decodeCosts = (text: string): readonly ModelCosts[] | undefined => {
  const content = readJson(text)
  if (typeof content !== 'object' || content === null || !('version' in content && 'models' in content))
    return undefined
  if (content.version !== version || !Array.isArray(content.models)) return undefined
  const models: ModelCosts[] = []
  for (const entry of content.models as readonly unknown[]) {
    if (!Array.isArray(entry)) return undefined
    const [model, prefill, load] = entry as readonly unknown[]
    const [prefillEvidence, loadEvidence] = [evidenceOf(prefill), evidenceOf(load)]
    if (typeof model !== 'string' || prefillEvidence === undefined || loadEvidence === undefined) return undefined
    models.push({ model, prefill: prefillEvidence, load: loadEvidence })
  }
  return models
}

const numbersOf = ({ count, weight, x, y, xx, xy }: LineEvidence): readonly number[] => [count, weight, x, y, xx, xy]

const evidenceOf = (numbers: unknown): LineEvidence | undefined => {
  if (!Array.isArray(numbers)) return undefined
  const sound = (numbers as readonly unknown[]).filter(isSound)
  const [count, weight, x, y, xx, xy] = sound
  if (numbers.length !== 6 || count === undefined || weight === undefined || x === undefined) return undefined
  return y === undefined || xx === undefined || xy === undefined ? undefined : { count, weight, x, y, xx, xy }
}

/** A sum beyond this would make the arithmetic overflow. */
const largest = 1e150

const isSound = (number: unknown): number is number => typeof number === 'number' && number >= 0 && number <= largest
