import { connectors } from '../kvcache/registry.ts'
import { type ConfigProblem, problemIf } from './config-problem.ts'
import { valueAt } from './config-tree.ts'
import { listConfigOptions } from './options.ts'
import { connectorOf, defaultPoolName } from './pools.ts'
import type { ParsedConfig } from './schema.ts'

type Groups = Pick<ParsedConfig, 'routing' | 'engines' | 'kv' | 'pools' | 'reaper'>

/** A pool, and where its options stand in the configuration. */
type CheckedPool = ParsedConfig['pools'][number] & {
  readonly paths: { readonly pods: string; readonly engines: string; readonly kv: string }
}

/** Checks each pool by itself and against the others. A default pool without pods counts only if alone. */
export const checkPools = (groups: Groups): readonly ConfigProblem[] => {
  const { routing, engines, kv, pools, reaper } = groups
  const further = pools.map((pool, index): CheckedPool => {
    const path = `pools.${index}`
    return { ...pool, paths: { pods: path, engines: path, kv: `${path}.kv` } }
  })
  const hasDefault = routing.pods.length > 0 || (routing.dns ?? routing.kubernetes) !== undefined || pools.length === 0
  const paths = { pods: 'routing', engines: 'engines', kv: 'kv' }
  const first: CheckedPool = { name: defaultPoolName, ...routing, ...engines, kv, paths }
  const all = hasDefault ? [first, ...further] : further
  return [
    ...all.flatMap((pool) => [
      ...checkPods(pool),
      ...checkEngines(pool),
      ...checkKv(pool),
      ...checkReaper(pool, reaper),
    ]),
    ...further.flatMap(({ kv: own, paths: { kv: path } }) =>
      problemIf(own.maxStoreBytes !== undefined, `${path}.maxStoreBytes`, 'limits all pools: set kv.maxStoreBytes'),
    ),
    ...all.flatMap((pool, index) => checkAgainst(pool, all.slice(0, index))),
  ]
}

/** What a pool must not share with those before it. */
const checkAgainst = ({ name, pods, kv, paths }: CheckedPool, others: readonly CheckedPool[]) => [
  ...problemIf(
    others.some((other) => other.name === name) || (paths.pods !== 'routing' && name === defaultPoolName),
    `${paths.pods}.name`,
    'another pool has this name',
  ),
  ...problemIf(
    pods.some((pod) => others.some((other) => other.pods.includes(pod))),
    `${paths.pods}.pods`,
    'lists a pod of another pool',
  ),
  ...problemIf(
    kv.directory !== undefined && others.some((other) => other.kv.directory === kv.directory),
    `${paths.kv}.directory`,
    'another pool has this folder: each pool removes files of its folder that it does not know',
  ),
]

const checkPods = ({ pods, dns, kubernetes, paths: { pods: path } }: CheckedPool): readonly ConfigProblem[] => {
  const ways = [pods.length > 0, dns !== undefined, kubernetes !== undefined].filter(Boolean).length
  const named = (['service', 'selector', 'inferencePool'] as const).filter((name) => kubernetes?.[name] !== undefined)
  const list = [path, 'kubernetes', ...named.slice(0, 1)].join('.')
  return [
    ...problemIf(
      ways === 0,
      `${path}.pods`,
      `there are no engines: give ${path}.pods, ${path}.dns or ${path}.kubernetes${path === 'routing' ? ', or pools' : ''}`,
    ),
    ...problemIf(
      ways > 1,
      dns === undefined ? list : `${path}.dns.name`,
      `give one of ${path}.pods, ${path}.dns and ${path}.kubernetes, not both`,
    ),
    ...problemIf(
      kubernetes !== undefined && named.length !== 1,
      list,
      'give one of service, selector and inferencePool',
    ),
    ...problemIf(
      named.includes('selector') && kubernetes?.ports.length === 0,
      `${path}.kubernetes.ports`,
      'a selector does not name the ports of its pods: give them',
    ),
  ]
}

const checkEngines = ({ paths: { engines: path }, ...pool }: CheckedPool): readonly ConfigProblem[] =>
  (['caFile', 'serverName'] as const).flatMap((name) =>
    problemIf(!pool.https && pool[name] !== undefined, `${path}.${name}`, `belongs to ${path}.https`),
  )

/** Of the selected connector, what it finds; of every other one, the options that are set although only it has them. */
const checkKv = ({ kv, paths: { kv: path } }: CheckedPool): readonly ConfigProblem[] => {
  const set = listConfigOptions()
    .filter(({ path: [group], defaultText }) => group === 'kv' && defaultText === undefined)
    .map(({ path: [, ...option] }) => option)
    .filter((option) => valueAt(kv, option) !== undefined)
  return connectors.flatMap((connector) => {
    const message = `belongs to the connector ${connector.name}`
    const foreign = set
      .filter(([name = '']) => Object.hasOwn(connector.options, name))
      .map((option) => ({ option: option.join('.'), message }))
    const found = connectorOf(kv) === connector.name ? (connector.check?.(kv) ?? []) : foreign
    return found.flatMap((problem) => problemIf(true, `${path}.${problem.option}`, problem.message))
  })
}

const checkReaper = (
  { kv, paths: { kv: path } }: CheckedPool,
  reaper: ParsedConfig['reaper'],
): readonly ConfigProblem[] => [
  ...problemIf(
    reaper.announceGraceMs <= kv.callTimeoutMs,
    'reaper.announceGraceMs',
    `reaper.announceGraceMs (${reaper.announceGraceMs}) must exceed ${path}.callTimeoutMs (${kv.callTimeoutMs}), else KV is removed while it is still being stored`,
    [`${path}.callTimeoutMs`],
  ),
  ...problemIf(
    reaper.removalLeaseMs <= kv.callTimeoutMs,
    'reaper.removalLeaseMs',
    `reaper.removalLeaseMs (${reaper.removalLeaseMs}) must exceed ${path}.callTimeoutMs (${kv.callTimeoutMs}), else two gateways remove the same KV at once`,
    [`${path}.callTimeoutMs`],
  ),
]
