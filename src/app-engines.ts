import type { Config } from './config/config.ts'
import type { KvConnector } from './kvcache/kv-connector.ts'
import { createLlamacppSlotsConnector } from './kvcache/llamacpp-slots/connector.ts'
import { createNoConnector } from './kvcache/no-connector.ts'
import type { SlotLedger } from './kvcache/slots/slot-ledger.ts'
import { createDnsPodSource } from './routing/dns-pod-source.ts'
import type { PodSource } from './routing/pod.ts'
import type { PodChange } from './routing/pod-monitor.ts'
import { createStaticPodSource } from './routing/static-pod-source.ts'
import type { Logger } from './telemetry/logger.ts'

/** The pods, from a list or from DNS. */
export const createPodSource = (config: Config, log: Logger): PodSource => {
  const { routing, turns } = config
  const options = {
    healthIntervalMs: routing.healthIntervalMs,
    healthTimeoutMs: routing.healthTimeoutMs,
    turnLeaseMs: turns.leaseSeconds * 1000,
    onChange: (change: PodChange) => log.info('pod', { ...change }),
  }
  return routing.dns === undefined
    ? createStaticPodSource({ ...options, addresses: routing.pods })
    : createDnsPodSource({ ...options, ...routing.dns })
}

/** The connector that the configuration names. */
export const createConnector = (
  config: Config,
  parts: { readonly ledger: SlotLedger; readonly pods: Pick<PodSource, 'pods'>; readonly log: Logger },
): KvConnector & { close(): Promise<void> } => {
  const { kv, turns } = config
  if (kv.connector === 'none' || kv.directory === undefined) return createNoConnector()
  return createLlamacppSlotsConnector({
    ledger: parts.ledger,
    pods: () => parts.pods.pods().map((pod) => pod.address),
    kvDirectory: kv.directory,
    callTimeoutMs: kv.callTimeoutMs,
    leaseMs: turns.leaseSeconds * 1000,
    minTokens: kv.minTokens,
    orphanGraceMs: config.reaper.announceGraceMs,
    log: parts.log,
  })
}
