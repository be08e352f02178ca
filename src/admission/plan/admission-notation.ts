/** A kind of work that may need resources: a turn from before it is forwarded until it has ended, or one load of stored KV into a pod. */
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

const resourceName = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const wholeNumber = /^(?:0|[1-9][0-9]{0,8})$/
const positiveNumber = /^[1-9][0-9]{0,8}$/

export const isResourceName = (text: string): boolean => resourceName.test(text)

/**
 * Reads `prefill=R1:4 R2:5`, `load=R1:1`, or the same of one model: `prefill/my-model=R1:4`. Everything between the first slash and the last
 * equals sign is the model's name. Undefined for anything else, and for a resource that is named twice.
 */
export const parseRequirement = (text: string): RequirementText | undefined => {
  const equalsAt = text.lastIndexOf('=')
  if (equalsAt === -1) return undefined
  const work = text.slice(0, equalsAt)
  const slashAt = work.indexOf('/')
  const kind = workKindOf(slashAt === -1 ? work : work.slice(0, slashAt))
  const model = slashAt === -1 ? undefined : work.slice(slashAt + 1)
  const counts = parseCounts(text.slice(equalsAt + 1))
  if (kind === undefined || model === '' || counts === undefined) return undefined
  return { kind, model, counts }
}

const workKindOf = (text: string): WorkKind | undefined => (text === 'prefill' || text === 'load' ? text : undefined)

const parseCounts = (text: string): ReadonlyMap<string, number> | undefined => {
  const counts = new Map<string, number>()
  for (const item of text.split(/\s+/).filter((part) => part !== '')) {
    const [resource = '', count = '', ...rest] = item.split(':')
    if (rest.length > 0 || !resourceName.test(resource) || !wholeNumber.test(count)) return undefined
    if (counts.has(resource)) return undefined
    counts.set(resource, Number(count))
  }
  return counts.size === 0 ? undefined : counts
}

/**
 * Reads `R1:10` (at every pod, or in all where the resource is global), `R2:5:0` (at the first pod of the list) or `R2:5:10.0.0.1:8000` (at
 * that pod). Nothing is ambiguous: an index has no colon, an address has one. Undefined for anything else.
 */
export const parseResourceCount = (text: string): ResourceCountText | undefined => {
  const [resource = '', count = '', ...rest] = text.split(':')
  if (!resourceName.test(resource) || !wholeNumber.test(count)) return undefined
  if (rest.length === 0) return { resource, count: Number(count), pod: undefined }
  const pod = rest.join(':')
  if (rest.length === 1) return wholeNumber.test(pod) ? { resource, count: Number(count), pod: Number(pod) } : undefined
  return rest.every((part) => part !== '' || pod.startsWith('[')) && positiveNumber.test(rest.at(-1) ?? '')
    ? { resource, count: Number(count), pod }
    : undefined
}

/** Reads `my-model=2`: the model's priority, 1 is the highest. Undefined for anything else. */
export const parsePriority = (text: string): { readonly model: string; readonly priority: number } | undefined => {
  const equalsAt = text.lastIndexOf('=')
  const model = text.slice(0, Math.max(0, equalsAt))
  const priority = text.slice(equalsAt + 1)
  return model === '' || !positiveNumber.test(priority) ? undefined : { model, priority: Number(priority) }
}
