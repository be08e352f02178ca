import type { WorkKind } from './admission-notation.ts'

/** A resource that a piece of work needs. */
export interface ResourceNeed {
  readonly resource: string
  /** How many copies, at least 1. */
  readonly count: number
}

/** Which resources there are, how many copies of each, and who needs them. */
export interface AdmissionPlan {
  /** In the order in which the requirements name them. */
  readonly resources: readonly { readonly name: string; readonly isGlobal: boolean }[]
  /** What a piece of work needs: its kind's requirements, and over them, resource by resource, those of its model. Cheap. */
  needsOf(kind: WorkKind, model: string | undefined): readonly ResourceNeed[]
  /** Copies at a pod; of a global resource, copies in all. */
  countOf(resource: string, pod: string): number
  /** 1 is the highest. */
  priorityOf(model: string | undefined): number
}

/** The copies there are, as a table: what is global, and what every pod has. */
export const countTable = (
  plan: Pick<AdmissionPlan, 'resources' | 'countOf'>,
  pods: readonly string[],
): {
  readonly global: Readonly<Record<string, number>>
  readonly pods: readonly Readonly<Record<string, number>>[]
} => {
  const counts = (isGlobal: boolean, pod: string) =>
    Object.fromEntries(
      plan.resources
        .filter((resource) => resource.isGlobal === isGlobal)
        .map(({ name }) => [name, plan.countOf(name, pod)]),
    )
  return { global: counts(true, ''), pods: pods.map((pod) => counts(false, pod)) }
}
