/** What a decision's waits and load leave of `admission.messageTimeoutMs`, so that Envoy has it in time: milliseconds. */
export const decisionMarginMs = 1000
