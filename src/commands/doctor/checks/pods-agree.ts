import type { EngineFacts } from '../engine-facts.ts'
import { type Check, checkOf, type Problem, type Problems } from '../finding.ts'

/** `10.0.0.1:8000 b1234; 10.0.0.2:8000 b1235` */
const listed = (groups: ReadonlyMap<string, readonly EngineFacts[]>): string =>
  [...groups]
    .map(([value, engines]) => `${engines.map(({ address }) => address).join(', ')}: ${value || 'none'}`)
    .join('; ')

const agreement = checkOf('pods-agree', 'engines', (engines): readonly Problem[] =>
  [...Map.groupBy(engines, ({ pool }) => pool)].flatMap(([pool, all]): readonly Problem[] => {
    const models = Map.groupBy(all, (engine) => engine.models.join(', '))
    const disagreement: Problem = {
      severity: 'error',
      problem: `Pods of pool ${pool} serve different models: ${listed(models)}.`,
      why: 'KV of one is of no use to another, and a session that changes its pod computes everything again, or fails.',
      fix: 'the same model in each pod of a pool; a pool of its own for each other model (pools)',
    }
    return [
      ...(models.size > 1 ? [disagreement] : []),
      ...[...models.values()].flatMap((same) => layoutProblems(pool, same)),
    ]
  }),
)

/** Of pods with the same models. */
const layoutProblems = (pool: string, engines: readonly EngineFacts[]): readonly Problem[] => {
  const names = new Set(engines.flatMap(({ layout }) => Object.keys(layout)))
  return [...names].flatMap((name): Problems => {
    const values = Map.groupBy(engines, ({ layout }) => layout[name] ?? '')
    if (values.size < 2) return []
    return {
      severity: 'error',
      problem: `Pods of pool ${pool} differ in ${name}: ${listed(values)}.`,
      why: 'An engine does not load KV of another layout: a session that changes its pod is a miss (kv_incompatible).',
      fix: 'the same version, model file and flags in each pod of a pool',
    }
  })
}

export const engineChecks: readonly Check[] = [agreement]
