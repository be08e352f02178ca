import { parseResourceCount, type ResourceCountText } from './admission-notation.ts'
import type { AdmissionSettings, PlanProblem } from './admission-settings.ts'

/** Counts that are given outright, by resource. */
export interface Overrides {
  /** Also the count of a global resource. */
  readonly everywhere: ReadonlyMap<string, number>
  /** By resource, then by the pod's address. */
  readonly byPod: ReadonlyMap<string, ReadonlyMap<string, number>>
  readonly problems: readonly PlanProblem[]
}

/** What is not in the notation is refused where the options are read, and left out here. */
export const collectOverrides = (
  settings: Pick<AdmissionSettings, 'resources' | 'globalResources'>,
  known: { readonly required: ReadonlySet<string>; readonly pods: readonly string[] | undefined },
): Overrides => {
  const isGlobal = new Set(settings.globalResources)
  const everywhere = new Map<string, number>()
  const byPod = new Map<string, Map<string, number>>()

  /** Returns what is wrong with it. */
  const add = ({ resource, count, pod }: ResourceCountText): string | undefined => {
    if (!known.required.has(resource)) return unusedText(resource)
    if (pod !== undefined && isGlobal.has(resource)) {
      return `${resource} is global and belongs to no pod; write ${resource}:${count}`
    }
    const place = placeOf(pod, known.pods)
    if (place.kind === 'unknown') return `${resource}: ${place.message}`
    const counts = place.kind === 'everywhere' ? everywhere : (byPod.get(resource) ?? new Map<string, number>())
    const name = place.kind === 'everywhere' ? resource : place.address
    if (counts.has(name)) return `${resource} is given twice for the same place; give it once`
    counts.set(name, count)
    if (place.kind === 'pod') byPod.set(resource, counts)
    return undefined
  }

  const unused = [...isGlobal].filter((resource) => !known.required.has(resource)).map(unusedText)
  const wrong = settings.resources.map((text) => {
    const item = parseResourceCount(text)
    return item === undefined ? undefined : add(item)
  })
  return {
    everywhere,
    byPod,
    problems: [
      ...unused.map((message) => ({ option: 'globalResources' as const, message })),
      ...wrong.filter((message) => message !== undefined).map((message) => ({ option: 'resources' as const, message })),
    ],
  }
}

const unusedText = (resource: string): string =>
  `Nothing requires ${resource}; name it in admission.requirements, or leave it out here`

type Place =
  | { readonly kind: 'everywhere' }
  | { readonly kind: 'pod'; readonly address: string }
  | { readonly kind: 'unknown'; readonly message: string }

const placeOf = (pod: ResourceCountText['pod'], pods: readonly string[] | undefined): Place => {
  if (pod === undefined) return { kind: 'everywhere' }
  if (typeof pod === 'string') {
    return pods === undefined || pods.includes(pod)
      ? { kind: 'pod', address: pod }
      : { kind: 'unknown', message: 'the pod is not in routing.pods; name one of them, or its index' }
  }
  if (pods === undefined) {
    return { kind: 'unknown', message: 'pods of routing.dns have no index; name the pod by its host:port' }
  }
  const address = pods[pod]
  return address === undefined
    ? { kind: 'unknown', message: `there is no pod ${pod}; routing.pods has the indices 0 to ${pods.length - 1}` }
    : { kind: 'pod', address }
}
