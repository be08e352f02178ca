import { isMap, isSeq, parseDocument } from 'yaml'
import type { Children } from '../../playground/child-process.ts'
import { clusters, manager } from '../../playground/envoy-config.ts'
import { freePort } from '../../playground/free-port.ts'
import { startEnvoy } from '../../playground/start-envoy.ts'
import { floorConfig } from '../gateway/envoy-configs.ts'
import { agentNameHeaders } from './agents.ts'

/** Starts an Envoy that keeps each name of an agent's conversation on a pod, by a hash. Resolves to its URL. */
export const startRingHash = async (children: Children, pods: readonly string[]): Promise<string> => {
  const listen = `127.0.0.1:${await freePort()}`
  await startEnvoy({
    children,
    file: 'envoy.yaml',
    addresses: { listen, pods, gateways: ['127.0.0.1:1'] },
    change: (text) => ringHashConfig(floorConfig(text)),
  })
  return `http://${listen}`
}

const ringHashConfig = (text: string): string => {
  const document = parseDocument(text)
  const names = agentNameHeaders.map((name) => ({ header: { header_name: name }, terminal: true }))
  const route = [...manager, 'route_config', 'virtual_hosts', 0, 'routes', 0, 'route']
  document.setIn([...route, 'hash_policy'], document.createNode(names))
  const cluster = [...clusters, 0]
  document.deleteIn([...cluster, 'load_balancing_policy'])
  document.setIn([...cluster, 'lb_policy'], 'RING_HASH')
  // By their numbers: ports change from run to run.
  const endpoints = document.getIn([...cluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints'], true)
  for (const [pod, endpoint] of (isSeq(endpoints) ? endpoints.items : []).entries()) {
    if (isMap(endpoint))
      endpoint.set('metadata', document.createNode({ filter_metadata: { 'envoy.lb': { hash_key: `pod-${pod}` } } }))
  }
  return document.toString()
}
