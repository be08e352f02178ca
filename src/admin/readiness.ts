/** Whether the gateway can take turns now. */
export interface Readiness {
  readonly ready: boolean
  /** In a few words each, what is missing; empty when ready. */
  readonly reasons: readonly string[]
}
