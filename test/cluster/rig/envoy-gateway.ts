import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import { packageRoot, toolsDir } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { clusterTool } from './control-plane.ts'
import type { Rig } from './rig.ts'
import { deployment } from './workloads.ts'

/** Envoy Gateway itself listens on 8080. */
const listenPort = 10_800
const variables = { ENVOY_GATEWAY_NAMESPACE: 'default' }
const controllerName = 'gateway.envoyproxy.io/gatewayclass-controller'

/** Envoy Gateway as a pod, with its CRDs and the class `eg`; it runs Envoy beside itself. */
export const startEnvoyGateway = async (rig: Rig): Promise<void> => {
  await rig.installCrds('gateway-api')
  await rig.installCrds('envoy-gateway')
  const folder = join(rig.folder, 'envoy-gateway')
  const home = (name: string): string => join(folder, name)
  const { command, version } = await findEnvoy({ env: process.env, toolsDir: toolsDir() })
  await mkdir(join(home('data'), 'envoy-versions', version, 'bin'), { recursive: true })
  await cp(command[0], join(home('data'), 'envoy-versions', version, 'bin', 'envoy'))
  const host = { configHome: home('config'), dataHome: home('data'), stateHome: home('state'), runtimeDir: home('run') }
  const kubernetes = { leaderElection: { disable: true } }
  const config = {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'EnvoyGateway',
    gateway: { controllerName },
    provider: {
      type: 'Custom',
      custom: { resource: { type: 'Kubernetes', kubernetes }, infrastructure: { type: 'Host', host } },
    },
    extensionApis: { enableLua: true },
  }
  const configFile = join(folder, 'config.yaml')
  await writeFile(configFile, stringify(config))
  const program = clusterTool('envoy-gateway')
  const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: rig.kubeconfigFile }
  // For the two processes beside each other, and what it wants to find in the cluster.
  for (const flags of [['--local', '--config-home', home('config')], ['--disable-topology-injector']]) {
    const outcome = await runCommand({ command: [program, 'certgen', ...flags], env: { ...env, ...variables } })
    if (!outcome.ok) throw new Error(outcome.reason)
  }
  rig.images['envoy-gateway'] = {
    entrypoint: [program, 'server', '--config-path', configFile],
    mounts: { '/certs': join(home('config'), 'certs', 'envoy-gateway') },
    env: { ...variables, KUBECONFIG: rig.kubeconfigFile },
  }
  const gatewayClass = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name: 'eg' },
    spec: { controllerName },
  }
  const container = { name: 'envoy-gateway', image: 'envoy-gateway' }
  await rig.apply(`${stringify(gatewayClass)}---\n${deployment('envoy-gateway', 1, { containers: [container] })}`)
}

/** Applies deploy/envoy-gateway as it is, but for what differs in the rig: Envoy is a process, and listens at the port itself. */
export const applyEnvoyGatewayFiles = async (rig: Rig, envoyVersion: string): Promise<string> => {
  const text = await readFile(join(packageRoot(), 'deploy/envoy-gateway/context-cache.yaml'), 'utf8')
  const documents = parseAllDocuments(text)
  for (const document of documents) {
    if (document.get('kind') === 'EnvoyProxy') {
      document.setIn(['spec', 'provider'], { type: 'Host', host: { envoyVersion } })
    }
    if (document.get('kind') === 'Gateway') document.setIn(['spec', 'listeners', 0, 'port'], listenPort)
  }
  const lua = join(packageRoot(), 'deploy/envoy/context-cache.lua')
  await rig.kubectl('create', 'configmap', 'context-cache-lua', `--from-file=lua=${lua}`)
  await rig.apply(documents.map(String).join('---\n'))
  const address = await rig.podAddress('-l', 'app=envoy-gateway')
  return `http://${address}:${listenPort}`
}
