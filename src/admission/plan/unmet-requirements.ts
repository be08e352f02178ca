import { workName } from './admission-notation.ts'
import type { AdmissionPlan } from './admission-plan.ts'
import type { PlanProblem } from './admission-settings.ts'

/**
 * Which resources can never be had in the number that is required. A turn holds what its prefill needs while its KV is loaded, so both together
 * must fit, and at every pod, since the router may choose any.
 */
export const findUnmet = (
  plan: AdmissionPlan,
  among: { readonly models: ReadonlySet<string>; readonly pods: readonly string[] },
): readonly PlanProblem[] =>
  plan.resources.flatMap(({ name }) => {
    const least = Math.min(...among.pods.map((pod) => plan.countOf(name, pod)))
    const [most] = [...among.models].map((model) => totalNeed(plan, model, name)).sort((a, b) => b.count - a.count)
    if (most === undefined || most.count <= least) return []
    const who = most.works.length === 1 ? `${most.works[0]} needs` : `${most.works.join(' and ')} together need`
    return [
      {
        option: 'resources',
        message: `${who} ${most.count} of ${name}, and there may be only ${least}: set it to at least ${most.count} here, or require less in admission.requirements`,
      },
    ]
  })

interface TotalNeed {
  readonly count: number
  /** Whose it is. */
  readonly works: readonly string[]
}

const totalNeed = (plan: AdmissionPlan, model: string, resource: string): TotalNeed => {
  const parts = (['prefill', 'load'] as const).map((kind) => ({
    work: workName(kind, model),
    count: plan.needsOf(kind, model).find((need) => need.resource === resource)?.count ?? 0,
  }))
  return {
    count: parts.reduce((sum, { count }) => sum + count, 0),
    works: parts.filter(({ count }) => count > 0).map(({ work }) => work),
  }
}
