import { readFileSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { defaultPoolName, type PoolConfig } from '../config/pools.ts'
import type { EngineAccess } from '../engines/engine-http.ts'
import type { ArtefactStore } from '../kvcache/artefact-store/artefact-store.ts'
import { createCacheSalts } from '../kvcache/cache-salts.ts'
import type { KvConnector } from '../kvcache/kv-connector.ts'
import { createZmqKvEvents } from '../kvcache/kv-events/create-zmq-kv-events.ts'
import { createEventSources } from '../kvcache/kv-events/event-sources.ts'
import { createNoKvEvents } from '../kvcache/kv-events/kv-events.ts'
import { createLlamacppSlotsConnector } from '../kvcache/llamacpp-slots/connector.ts'
import { createLmcacheConnector } from '../kvcache/lmcache/connector.ts'
import { loadConnector } from '../kvcache/load-connector.ts'
import { createNoConnector } from '../kvcache/no-connector.ts'
import { createPrefixCacheConnector } from '../kvcache/prefix-cache.ts'
import { createDnsPodSource } from '../routing/dns-pod-source.ts'
import { createKubernetesPodSource } from '../routing/kubernetes/kubernetes-pod-source.ts'
import type { PodSource } from '../routing/pod.ts'
import { createStaticPodSource, type PodChange } from '../routing/pod-monitor.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Warnings } from '../telemetry/warnings.ts'
import type { PoolStores } from './stores.ts'

/**
 * How the configuration says that the engines of a pool are reached.
 * @throws when the file with the authorities cannot be read
 */
export const engineAccessOf = ({ https, caFile, serverName, apiKey }: PoolConfig): EngineAccess => ({
  apiKey,
  tls: https ? { ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'), serverName } : undefined,
})

/**
 * The pods of a pool: from a list, from DNS or from Kubernetes.
 * @throws when there is no way to the Kubernetes API server
 */
export const createPodSource = async (
  { name, pods, dns, kubernetes, models }: PoolConfig,
  { routing, turns }: Pick<Config, 'routing' | 'turns'>,
  parts: {
    readonly access: EngineAccess
    readonly log: Logger
    readonly metrics: Pick<Metrics, 'forget'>
    readonly warnings: Warnings
    readonly onChange: (change: PodChange) => void
  },
): Promise<PodSource> => {
  const { log, metrics, warnings } = parts
  const options = {
    healthIntervalMs: routing.healthIntervalMs,
    healthTimeoutMs: routing.healthTimeoutMs,
    turnLeaseMs: turns.leaseSeconds * 1000,
    access: parts.access,
    models,
    onChange: (change: PodChange) => {
      parts.onChange(change)
      switch (change.kind) {
        case 'unauthorized':
          warnings.raise('engine_unauthorized', change.address, unauthorizedText(name, change))
          return
        case 'authorized':
          warnings.clear('engine_unauthorized', change.address)
          return
        case 'list-stale':
          warnings.raise('kubernetes_list_stale', `${name} ${change.name}`, staleText(name, change))
          return
        case 'list-current':
          warnings.clear('kubernetes_list_stale', `${name} ${change.name}`)
          return
        case 'failing':
          warnings.raiseOutage('engine_unavailable', change.address, change.reason)
          return
        case 'ready':
          if (warnings.clear('engine_unavailable', change.address)) return
          break
        case 'removed':
          warnings.forget(change.address)
          void metrics.forget('pod', change.address)
          break
        case 'resolve-failed':
          log.warn('the name of the pods cannot be resolved; the known pods stay', { ...change })
          return
        case 'added':
          break
      }
      log.info('pod', { ...change })
    },
  }
  if (kubernetes !== undefined) return createKubernetesPodSource({ ...options, ...kubernetes })
  return dns === undefined
    ? createStaticPodSource({ ...options, addresses: pods })
    : createDnsPodSource({ ...options, ...dns })
}

const staleText = (pool: string, list: { readonly name: string; readonly reason: string }): string =>
  `The pool ${pool} keeps the pods that it knows, since Kubernetes does not list its ${list.name} (${list.reason}): check the API server and the role of the gateway`

const unauthorizedText = (
  pool: string,
  { address, reason }: { readonly address: string; readonly reason: string },
): string => {
  const option = pool === defaultPoolName ? 'engines.apiKey' : `apiKey of the pool ${pool}`
  return `The engine ${address} refuses the gateway's key (${reason}), so that its KV is not loaded or stored: set ${option}`
}

const dayMs = 86_400_000

/**
 * The connector that the configuration of a pool names.
 * @throws when its module cannot be loaded
 */
export const createConnector = async (
  pool: PoolConfig,
  config: Pick<Config, 'kv' | 'turns' | 'sessions' | 'reaper'>,
  parts: {
    readonly stores: Omit<PoolStores, 'costs'>
    /** Of the pool alone. */
    readonly secret: string
    /** Undefined: KV is stored in `kv.directory`. */
    readonly artefactStore: ArtefactStore | undefined
    readonly pods: Pick<PodSource, 'pods'>
    readonly access: EngineAccess
    readonly log: Logger
    readonly warnings: Warnings
  },
): Promise<KvConnector> => {
  const { kv } = pool
  const { turns, sessions } = config
  const { maxStoreBytes, storeThreshold } = config.kv
  const { stores, secret, access, log, warnings } = parts
  const named = new Map(kv.lmcache.instances.map(splitAlias))
  const common = {
    pods: () => parts.pods.pods().map((pod) => pod.address),
    callTimeoutMs: kv.callTimeoutMs,
    access,
    log,
  }
  if (kv.connectorModule !== undefined) {
    return loadConnector(kv.connectorModule, { pods: common.pods, salts: createCacheSalts(secret), log })
  }
  switch (kv.connector) {
    case 'none':
      return createNoConnector()
    case 'prefix-cache':
      return createPrefixCacheConnector({ isolation: kv.isolation, secret, ...kv.prefixCache })
    case 'lmcache':
      return createLmcacheConnector({
        ...common,
        isolation: kv.isolation,
        secret,
        identity: stores.identity,
        coordinator: hostOf(kv.lmcache.url),
        instanceOf: (pod) => named.get(pod) ?? parts.pods.pods().find(({ address }) => address === pod)?.instance,
        worldSize: kv.lmcache.worldSize,
        ledger: stores.chunks,
        events:
          kv.events === 'off'
            ? createNoKvEvents()
            : createZmqKvEvents({ pods: common.pods, sources: createEventSources({ access: common.access }), log }),
        hasEvents: kv.events !== 'off',
        minTokens: kv.minTokens,
        vault: stores.vault,
        // A backstop: entries are removed with their session.
        vaultTtlMs: sessions.maxTtlSeconds * 1000 + dayMs,
      })
    case 'llamacpp-slots':
      return createLlamacppSlotsConnector({
        ...common,
        secret,
        maxTurnMs: turns.leaseSeconds * 1000,
        ledger: stores.ledger,
        kvDirectory: required(kv.directory),
        identity: stores.identity,
        onForeignFolder: (isForeign) => {
          if (isForeign)
            warnings.raise('kv_folder_foreign', required(kv.directory), foreignFolderText(required(kv.directory)))
          else warnings.clear('kv_folder_foreign', required(kv.directory))
        },
        maxArtefactBytes: maxStoreBytes === undefined ? undefined : maxStoreBytes * storeThreshold,
        store: parts.artefactStore,
        minTokens: kv.minTokens,
        orphanGraceMs: config.reaper.announceGraceMs,
      })
  }
}

const foreignFolderText = (directory: string): string =>
  `The KV folder ${directory} belongs to another session store, so that no KV is loaded or stored: give this gateway a folder of its own (kv.directory), or the other one's session store`

/** A value that the checks of the configuration guarantee. */
const required = (value: string | undefined): string => {
  if (value === undefined) throw new Error('the configuration was not checked')
  return value
}

const hostOf = (url: string | undefined): string => new URL(required(url)).host

const splitAlias = (alias: string): readonly [pod: string, name: string] => {
  const at = alias.indexOf('=')
  return [alias.slice(0, at), alias.slice(at + 1)]
}
