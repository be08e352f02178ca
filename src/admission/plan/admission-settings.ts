/** What an operator writes down; docs/admission.md has the notation. */
export interface AdmissionSettings {
  readonly requirements: readonly string[]
  readonly resources: readonly string[]
  readonly globalResources: readonly string[]
  readonly priorities: readonly string[]
  readonly defaultPriority: number
}

/** Something that cannot work, with what to do about it. */
export interface PlanProblem {
  readonly option: keyof AdmissionSettings
  readonly message: string
}
