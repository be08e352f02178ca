import { type Admission, createAdmission } from '../../src/admission/admission.ts'
import { type AdmissionPlan, type AdmissionSettings, planAdmission } from '../../src/admission/plan/plan-admission.ts'

const noSettings = {
  requirements: [],
  resources: [],
  globalResources: [],
  priorities: [],
  objectives: [],
  defaultPriority: 2,
}

/** `pods` undefined: pods come and go. */
export const outcomeOf = (settings: Partial<AdmissionSettings>, pods: readonly string[] | undefined) =>
  planAdmission({ ...noSettings, ...settings }, pods)

/** The plan of settings that must be valid. */
export const planOf = (settings: Partial<AdmissionSettings>, pods: readonly string[] | undefined): AdmissionPlan => {
  const outcome = outcomeOf(settings, pods)
  if (outcome.kind === 'planned') return outcome.plan
  throw new Error(JSON.stringify(outcome))
}

type Options = Parameters<typeof createAdmission>[0]

/** Admission control by a plan, on the clock of the process. */
export const admissionBy = (plan: AdmissionPlan, change: Partial<Options> = {}): Admission =>
  createAdmission({
    plan,
    maxWaiting: 10,
    maxWaitMs: 20_000,
    messageTimeoutMs: 30_000,
    leaseMs: 600_000,
    nowMs: () => performance.now(),
    events: { settled: () => {}, leaseExpired: () => {} },
    ...change,
  })
