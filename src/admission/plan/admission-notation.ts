/** Work that may need resources: a turn from before it is forwarded to its end, or one load of stored KV into a pod. */
export type WorkKind = 'prefill' | 'load'

/** One item of `admission.requirements`: what a kind of work needs, of one model or (`model` undefined) of any. */
export interface RequirementText {
  readonly kind: WorkKind
  readonly model: string | undefined
  /** Count by the name of the resource. */
  readonly counts: ReadonlyMap<string, number>
}

/** One item of `admission.resources`: how much there is of a resource, everywhere or (`pod`) at one pod. */
export interface ResourceCountText {
  readonly resource: string
  readonly count: number
  /** Index in the configured list of pods, or an address of it. */
  readonly pod: number | string | undefined
}

/** Stands for any model: no model's name is empty. */
export const anyModel = ''

/** The work in the notation: `prefill`, `load/my-model`. */
export const workName = (kind: WorkKind, model: string): string => (model === anyModel ? kind : `${kind}/${model}`)

const name = '[A-Za-z][A-Za-z0-9_-]{0,63}'
const count = '(?:0|[1-9][0-9]{0,8})'
const positive = '[1-9][0-9]{0,8}'

const resourceName = new RegExp(`^${name}$`)
const requirement = /^(prefill|load)(?:\/(.+))?=([^=]*)$/s
const need = new RegExp(`^(${name}):(${count})$`)
const resourceCount = new RegExp(`^(${name}):(${count})(?::(?:(${count})|((?:[^:]+|\\[[^\\]]+\\]):${positive})))?$`)
const namedPriority = new RegExp(`^(.+)=(${positive})$`, 's')

export const isResourceName = (text: string): boolean => resourceName.test(text)

/**
 * Reads `prefill=R1:4 R2:5`, `load=R1:1`, or the same of one model: `prefill/my-model=R1:4`. The model's name is all
 * between the first slash and the last equals sign. Undefined for anything else, and for a resource named twice.
 */
export const parseRequirement = (text: string): RequirementText | undefined => {
  const [, kind, model, needs = ''] = requirement.exec(text) ?? []
  if (kind !== 'prefill' && kind !== 'load') return undefined
  const counts = new Map<string, number>()
  for (const item of needs.trim().split(/\s+/)) {
    const [, resource, copies] = need.exec(item) ?? []
    if (resource === undefined || counts.has(resource)) return undefined
    counts.set(resource, Number(copies))
  }
  return { kind, model, counts }
}

/**
 * Reads `R1:10` (at every pod, or in all of a global resource), `R2:5:0` (at the first pod of the list) or
 * `R2:5:10.0.0.1:8000` (at that pod): an index has no colon, an address has one. Undefined for anything else.
 */
export const parseResourceCount = (text: string): ResourceCountText | undefined => {
  const [, resource, copies, index, address] = resourceCount.exec(text) ?? []
  if (resource === undefined) return undefined
  return { resource, count: Number(copies), pod: index === undefined ? address : Number(index) }
}

/** Reads `my-model=2`: the priority of a model or an objective, 1 is the highest. Undefined for anything else. */
export const parsePriority = (text: string): { readonly name: string; readonly priority: number } | undefined => {
  const [, named, priority] = namedPriority.exec(text) ?? []
  return named === undefined ? undefined : { name: named, priority: Number(priority) }
}
