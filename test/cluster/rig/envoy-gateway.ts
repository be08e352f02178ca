import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { runCommand } from '../../../playground/run-command.ts'
import { clusterTool } from './control-plane.ts'
import type { Rig } from './rig.ts'
import { server } from './workloads.ts'

const variables = { ENVOY_GATEWAY_NAMESPACE: 'default' }
const controllerName = 'gateway.envoyproxy.io/gatewayclass-controller'
const tools = '/opt/envoy-gateway'

/** Envoy Gateway as a pod, with its CRDs and the class `eg`; its Envoys are pods as well. */
export const startEnvoyGateway = async (rig: Rig): Promise<void> => {
  await rig.installCrds('gateway-api')
  await rig.installCrds('envoy-gateway')
  const config = {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'EnvoyGateway',
    gateway: { controllerName },
    provider: { type: 'Kubernetes', kubernetes: { leaderElection: { disable: true } } },
    extensionApis: { enableLua: true },
  }
  const configFile = join(rig.folder, 'envoy-gateway.yaml')
  await writeFile(configFile, stringify(config))
  const program = clusterTool('envoy-gateway')
  const env = { ...variables, HOME: rig.folder, KUBECONFIG: rig.kubeconfigFile }
  // Where its user can read it.
  const folder = join(rig.folder, 'envoy-gateway')
  await mkdir(folder)
  await copyFile(program, join(folder, 'envoy-gateway'))
  const outcome = await runCommand({ command: [program, 'certgen', '--disable-topology-injector'], env })
  if (!outcome.ok) throw new Error(outcome.reason)
  rig.images['envoyproxy/gateway'] = {
    entrypoint: ['envoy-gateway', 'server', '--config-path', configFile],
    mounts: { [tools]: folder },
    env: { ...variables, KUBECONFIG: rig.kubeconfigFile, PATH: `${tools}:${process.env['PATH']}` },
  }
  const gatewayClass = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name: 'eg' },
    spec: { controllerName },
  }
  const container = {
    name: 'envoy-gateway',
    image: 'envoyproxy/gateway',
    readinessProbe: { httpGet: { path: '/readyz', port: 8081 } },
    volumeMounts: [{ name: 'certs', mountPath: '/certs', readOnly: true }],
  }
  const volumes = [{ name: 'certs', secret: { secretName: 'envoy-gateway' } }]
  // xDS, rate limits, Wasm.
  const pod = server('envoy-gateway', [18_000, 18_001, 18_002], { containers: [container], volumes })
  await rig.apply(`${stringify(gatewayClass)}---\n${pod}`)
}
