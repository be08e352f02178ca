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
