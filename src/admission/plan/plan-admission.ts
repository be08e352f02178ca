import {
  anyModel,
  parsePriority,
  parseRequirement,
  type RequirementText,
  type WorkKind,
  workName,
} from './admission-notation.ts'
import type { AdmissionPlan, ResourceNeed } from './admission-plan.ts'
import type { AdmissionSettings, PlanProblem } from './admission-settings.ts'
import { collectOverrides, type Overrides } from './resource-overrides.ts'
import { findUnmet } from './unmet-requirements.ts'

export type PlanOutcome =
  /** Nothing requires anything: no work is ever held up. */
  | { readonly kind: 'off' }
  | { readonly kind: 'planned'; readonly plan: AdmissionPlan }
  | { readonly kind: 'invalid'; readonly problems: readonly PlanProblem[] }

/**
 * Works out what resources there are. Of each there are as many copies as the largest requirement names, unless `resources` says otherwise.
 * `pods` is the configured list, undefined where pods come and go.
 */
export const planAdmission = (settings: AdmissionSettings, pods: readonly string[] | undefined): PlanOutcome => {
  const requirements = collectRequirements(settings.requirements)
  const overrides = collectOverrides(settings, { required: new Set(requirements.largest.keys()), pods })
  const { priorities, problems: priorityProblems } = collectPriorities(settings.priorities)
  const problems = [...requirements.problems, ...overrides.problems, ...priorityProblems]
  if (problems.length > 0) return { kind: 'invalid', problems }
  if (requirements.largest.size === 0) return { kind: 'off' }

  const isGlobal = new Set(settings.globalResources)
  const needsOf = rememberedNeeds(requirements)
  const plan: AdmissionPlan = {
    resources: [...requirements.largest.keys()].map((name) => ({ name, isGlobal: isGlobal.has(name) })),
    needsOf,
    countOf: (resource, pod) =>
      overrides.byPod.get(resource)?.get(pod) ??
      overrides.everywhere.get(resource) ??
      requirements.largest.get(resource) ??
      0,
    priorityOf: (model) => (model === undefined ? undefined : priorities.get(model)) ?? settings.defaultPriority,
  }
  const unmet = findUnmet(plan, {
    models: new Set([anyModel, ...requirements.byWork.prefill.keys(), ...requirements.byWork.load.keys()]),
    pods: podsToCheck(overrides, pods),
  })
  return unmet.length > 0 ? { kind: 'invalid', problems: unmet } : { kind: 'planned', plan }
}

interface Requirements {
  /** By kind and model; the kind's own under `anyModel`. */
  readonly byWork: Readonly<Record<WorkKind, ReadonlyMap<string, ReadonlyMap<string, number>>>>
  /** The largest requirement of each resource. */
  readonly largest: ReadonlyMap<string, number>
  readonly problems: readonly PlanProblem[]
}

const collectRequirements = (texts: readonly string[]): Requirements => {
  const byWork = { prefill: new Map<string, Map<string, number>>(), load: new Map<string, Map<string, number>>() }
  const largest = new Map<string, number>()
  const problems: PlanProblem[] = []
  for (const { kind, model = anyModel, counts } of parsed(texts, parseRequirement)) {
    const known = byWork[kind].get(model) ?? new Map<string, number>()
    byWork[kind].set(model, known)
    for (const [resource, count] of counts) {
      if (known.has(resource)) {
        problems.push({
          option: 'requirements',
          message: `${workName(kind, model)} names ${resource} twice; name it once`,
        })
      }
      known.set(resource, count)
      largest.set(resource, Math.max(count, largest.get(resource) ?? 0))
    }
  }
  return { byWork, largest, problems }
}

const collectPriorities = (
  texts: readonly string[],
): { readonly priorities: ReadonlyMap<string, number>; readonly problems: readonly PlanProblem[] } => {
  const priorities = new Map<string, number>()
  const problems: PlanProblem[] = []
  for (const { model, priority } of parsed(texts, parsePriority)) {
    if (priorities.has(model)) {
      problems.push({ option: 'priorities', message: `${model} has two priorities; give it one` })
    }
    priorities.set(model, priority)
  }
  return { priorities, problems }
}

/** What is not in the notation is refused where the options are read. */
const parsed = <T>(texts: readonly string[], parse: (text: string) => T | undefined): readonly T[] =>
  texts.map(parse).filter((item) => item !== undefined)

/** Models without requirements of their own share one answer, so that nothing is kept for names that clients make up. */
const rememberedNeeds = ({ byWork }: Requirements): AdmissionPlan['needsOf'] => {
  const needs = {
    prefill: new Map([...byWork.prefill.keys()].map((model) => [model, mergeNeeds(byWork.prefill, model)])),
    load: new Map([...byWork.load.keys()].map((model) => [model, mergeNeeds(byWork.load, model)])),
  }
  return (kind, model = anyModel) => needs[kind].get(model) ?? needs[kind].get(anyModel) ?? noNeeds
}

const noNeeds: readonly ResourceNeed[] = []

const mergeNeeds = (
  byModel: ReadonlyMap<string, RequirementText['counts']>,
  model: string,
): readonly ResourceNeed[] => {
  const counts = new Map([...(byModel.get(anyModel) ?? []), ...(byModel.get(model) ?? [])])
  return [...counts].filter(([, count]) => count > 0).map(([resource, count]) => ({ resource, count }))
}

/** Where pods come and go, those that are named and any other. */
const podsToCheck = ({ byPod }: Overrides, pods: readonly string[] | undefined): readonly string[] =>
  pods === undefined || pods.length === 0
    ? [anyPod, ...[...byPod.values()].flatMap((counts) => [...counts.keys()])]
    : pods

const anyPod = ''
