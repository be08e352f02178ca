import {
  anyModel,
  parsePriority,
  parseRequirement,
  parseResourceCount,
  type RequirementText,
  type ResourceCountText,
  type WorkKind,
  workName,
} from './admission-notation.ts'

/** The options `admission.*` that say what work requires; docs/admission.md has the notation. */
export interface AdmissionSettings {
  readonly requirements: readonly string[]
  readonly resources: readonly string[]
  readonly globalResources: readonly string[]
  readonly priorities: readonly string[]
  readonly objectives: readonly string[]
  readonly defaultPriority: number
}

/** A setting that cannot work, with what to do about it. */
export interface PlanProblem {
  readonly option: keyof AdmissionSettings
  readonly message: string
}

/** A resource that a piece of work needs. */
export interface ResourceNeed {
  readonly resource: string
  /** Copies, at least 1. */
  readonly count: number
}

/** Which resources exist, how many copies of each, and which work needs them. */
export interface AdmissionPlan {
  /** In the order in which the requirements name them. */
  readonly resources: readonly { readonly name: string; readonly isGlobal: boolean }[]
  /** What a piece of work needs: its kind's requirements, and its model's instead where both name a resource. */
  needsOf(kind: WorkKind, model: string | undefined): readonly ResourceNeed[]
  /** Copies at a pod; of a global resource, copies in all. */
  countOf(resource: string, pod: string): number
  /** 1 is the highest. */
  priorityOf(model: string | undefined, objective?: string): number
}

export type PlanOutcome =
  | { readonly kind: 'planned'; readonly plan: AdmissionPlan }
  | { readonly kind: 'invalid'; readonly problems: readonly PlanProblem[] }

/**
 * Plans the resources. Each has as many copies as its largest requirement, unless `resources` says otherwise. `pods`:
 * those of all pools; undefined: DNS or Kubernetes decides. Ignores texts outside the notation, which options refuse.
 */
export const planAdmission = (settings: AdmissionSettings, pods: readonly string[] | undefined): PlanOutcome => {
  const problems: PlanProblem[] = []
  const report: Report = (option, message) => void problems.push({ option, message })
  const requirements = parsed(settings.requirements, parseRequirement)
  const byWork = mergeRequirements(requirements, report)
  const largest = new Map<string, number>()
  for (const [resource, count] of requirements.flatMap(({ counts }) => [...counts])) {
    largest.set(resource, Math.max(count, largest.get(resource) ?? 0))
  }
  const counted = parsed(settings.resources, parseResourceCount)
  const counts = readCounts(counted, { required: largest, globalResources: settings.globalResources, pods, report })
  const priorities = readPriorities('priorities', settings, report)
  const objectives = readPriorities('objectives', settings, report)
  if (problems.length > 0) return { kind: 'invalid', problems }

  const isGlobal = new Set(settings.globalResources)
  // Models without requirements of their own share one list, so that nothing is kept for names that clients make up.
  const needs = new Map([...byWork.keys()].map((work) => [work, mergedNeeds(byWork, work)]))
  const plan: AdmissionPlan = {
    resources: [...largest.keys()].map((name) => ({ name, isGlobal: isGlobal.has(name) })),
    needsOf: (kind, model = anyModel) => needs.get(workName(kind, model)) ?? needs.get(kind) ?? noNeeds,
    countOf: (resource, pod) =>
      counts.get(placeName(resource, pod)) ?? counts.get(resource) ?? largest.get(resource) ?? 0,
    priorityOf: (model = anyModel, objective = '') =>
      objectives.get(objective) ?? priorities.get(model) ?? settings.defaultPriority,
  }
  // Where pods come and go: those that are named, and any other.
  const named = counted.map(({ pod }) => pod).filter((pod) => typeof pod === 'string')
  const checkedPods = pods === undefined || pods.length === 0 ? ['', ...named] : pods
  const models = requirements.map(({ model }) => model ?? anyModel)
  reportUnmet(plan, { models: [anyModel, ...models], pods: checkedPods, report })
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'planned', plan }
}

type Report = (option: keyof AdmissionSettings, message: string) => void

type Counts = ReadonlyMap<string, number>

const noNeeds: readonly ResourceNeed[] = []

const parsed = <T>(texts: readonly string[], parse: (text: string) => T | undefined): readonly T[] =>
  texts.map(parse).filter((item) => item !== undefined)

/** Counts by the name of the work (`prefill`, `prefill/model`), then by resource. */
const mergeRequirements = (items: readonly RequirementText[], report: Report): ReadonlyMap<string, Counts> => {
  const byWork = new Map<string, Map<string, number>>()
  for (const { kind, model = anyModel, counts } of items) {
    const work = workName(kind, model)
    const known = byWork.get(work) ?? new Map<string, number>()
    byWork.set(work, known)
    for (const [resource, count] of counts) {
      if (known.has(resource)) report('requirements', `${work} names ${resource} twice; name it once`)
      known.set(resource, count)
    }
  }
  return byWork
}

const mergedNeeds = (byWork: ReadonlyMap<string, Counts>, work: string): readonly ResourceNeed[] => {
  const [kind = ''] = work.split('/')
  const counts = new Map([...(byWork.get(kind) ?? []), ...(byWork.get(work) ?? [])])
  return [...counts].filter(([, count]) => count > 0).map(([resource, count]) => ({ resource, count }))
}

/** Names a resource at a pod, or (`address` undefined) everywhere. Neither names nor addresses have a space. */
export const placeName = (resource: string, address: string | undefined): string =>
  address === undefined ? resource : `${resource} ${address}`

/** Configured counts by `placeName`. */
const readCounts = (
  items: readonly ResourceCountText[],
  known: {
    readonly required: Counts
    readonly globalResources: readonly string[]
    readonly pods: readonly string[] | undefined
    readonly report: Report
  },
): Counts => {
  const { required, globalResources, pods, report } = known
  const counts = new Map<string, number>()

  const problemOf = ({ resource, count, pod }: ResourceCountText, address: string | undefined): string | undefined => {
    if (!required.has(resource)) return unusedMessage(resource)
    if (pod !== undefined && globalResources.includes(resource)) {
      return `${resource} is global and belongs to no pod; write ${resource}:${count}`
    }
    if (typeof pod === 'number' && pods === undefined) {
      return `${resource}: pods by host name, of DNS or Kubernetes have no index; name the pod by its ip:port`
    }
    if (typeof pod === 'number' && address === undefined) {
      return `${resource}: there is no pod ${pod}; the pods have the indices 0 to ${(pods?.length ?? 0) - 1}`
    }
    if (typeof pod === 'string' && pods?.includes(pod) === false) {
      return `${resource}: the pod is not configured; name one that is, or its index`
    }
    if (!counts.has(placeName(resource, address))) return undefined
    return `${resource} is given twice for the same place; give it once`
  }

  for (const resource of new Set(globalResources)) {
    if (!required.has(resource)) report('globalResources', unusedMessage(resource))
  }
  for (const item of items) {
    const address = typeof item.pod === 'number' ? pods?.[item.pod] : item.pod
    const problem = problemOf(item, address)
    if (problem === undefined) counts.set(placeName(item.resource, address), item.count)
    else report('resources', problem)
  }
  return counts
}

const unusedMessage = (resource: string): string =>
  `nothing requires ${resource}; name it in admission.requirements, or leave it out here`

const readPriorities = (option: 'priorities' | 'objectives', settings: AdmissionSettings, report: Report): Counts => {
  const priorities = new Map<string, number>()
  for (const { name, priority } of parsed(settings[option], parsePriority)) {
    if (priorities.has(name)) report(option, `${name} has two priorities; give it one`)
    priorities.set(name, priority)
  }
  return priorities
}

/**
 * Reports resources that can never be had in the number that is required. A turn holds what its prefill needs while its
 * KV is loaded, so both together must fit, and at every pod, since the router may choose any.
 */
const reportUnmet = (
  plan: AdmissionPlan,
  among: { readonly models: readonly string[]; readonly pods: readonly string[]; readonly report: Report },
): void => {
  for (const { name } of plan.resources) {
    const least = Math.min(...among.pods.map((pod) => plan.countOf(name, pod)))
    const demands = among.models.map((model) => demandOf(plan, name, model))
    const { works, count } = demands.reduce((largest, demand) => (demand.count > largest.count ? demand : largest))
    if (count <= least) continue
    const subject = works.length === 1 ? `${works[0]} needs` : `${works.join(' and ')} together need`
    among.report(
      'resources',
      `${subject} ${count} of ${name}, and there may be only ${least}: set it to at least ${count} here, or require less in admission.requirements`,
    )
  }
}

/** What a turn of a model and its load need of a resource together. */
const demandOf = (plan: AdmissionPlan, resource: string, model: string) => {
  const works: string[] = []
  let count = 0
  for (const kind of ['prefill', 'load'] as const) {
    const need = plan.needsOf(kind, model).find((each) => each.resource === resource)
    if (need === undefined) continue
    works.push(workName(kind, model))
    count += need.count
  }
  return { works, count }
}
