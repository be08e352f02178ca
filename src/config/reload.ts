import { isDeepStrictEqual } from 'node:util'
import type { Config } from './config.ts'
import { isTree, valueAt } from './config-tree.ts'

/** Options that a running gateway takes over. `*` is any pool; a group stands for all of its options. */
export const reloadableOptions: readonly string[] = [
  'log.level',
  'routing.pods',
  'routing.policy',
  'routing.stickinessFactor',
  'routing.stickinessMargin',
  'kv.loadBudgetMs',
  'pools.*.pods',
  'pools.*.kv.loadBudgetMs',
  'admission.maxWaiting',
  'admission.maxWaitMs',
  'sessions.defaultTtlSeconds',
  'sessions.minTtlSeconds',
  'sessions.maxTtlSeconds',
  'sessions.unknownSession',
  'sessions.implicit',
  'responses.maxConversationBytes',
  'responses.maxItemBytes',
  'responses.maxTenantBytes',
  'tenant.limits',
  'turns.maxJsonDepth',
  'turns.maxJsonKeys',
]

/** What a new configuration means for a running gateway. */
export type Reload =
  | { readonly kind: 'unchanged' }
  /** It can be taken over. `changed`: its options that differ, as `routing.policy`. */
  | { readonly kind: 'applicable'; readonly changed: readonly string[] }
  /** These options differ, and only a restart takes them over. */
  | { readonly kind: 'refused'; readonly fixed: readonly string[] }

/** Compares the effective configurations before and after. */
export const judgeReload = (before: Config, after: Config): Reload => {
  const changed = differencesOf(before, after, [])
  if (changed.length === 0) return { kind: 'unchanged' }
  // Resources belong to the pods that were listed at the start.
  const holdsResources = after.admission.requirements.length > 0
  const isFixed = (path: Path): boolean =>
    !isReloadable(path) || (path.at(-1) === 'pods' && (holdsResources || isListBegunOrEnded(before, after, path)))
  const fixed = changed.filter(isFixed)
  return fixed.length > 0
    ? { kind: 'refused', fixed: fixed.map(nameOf) }
    : { kind: 'applicable', changed: changed.map(nameOf) }
}

type Path = readonly string[]

const nameOf = (path: Path): string => path.join('.')

const isReloadable = (path: Path): boolean =>
  reloadableOptions.some((option) =>
    option.split('.').every((name, index) => name === path[index] || (name === '*' && path[index] !== undefined)),
  )

/** Without a list the pods come from DNS or Kubernetes, or there is no such pool. */
const isListBegunOrEnded = (before: Config, after: Config, path: Path): boolean =>
  [before, after].some((config) => isEmptyList(valueAt(config, path)))

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const isTreeOrList = (value: unknown): value is object => isTree(value) || Array.isArray(value)

/** Paths of options that differ. A list is one option, but for that of the pools. */
const differencesOf = (before: unknown, after: unknown, path: Path): Path[] => {
  const isPools = path.length === 1 && path[0] === 'pools'
  const isGroup = (isTree(before) && isTree(after)) || (isPools && lengthOf(before) === lengthOf(after))
  if (!isGroup || !isTreeOrList(before) || !isTreeOrList(after)) return isDeepStrictEqual(before, after) ? [] : [path]
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((name) =>
    differencesOf(Reflect.get(before, name), Reflect.get(after, name), [...path, name]),
  )
}

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0)
