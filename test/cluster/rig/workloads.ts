import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import { findRedis } from '../../../playground/install/find-redis.ts'
import { installLlamaRuntime } from '../../../playground/install/install-llama-runtime.ts'
import { packageRoot, toolsDir } from '../../../playground/paths.ts'
import { flags } from '../../../playground/run-command.ts'
import { nodeMount, nodeProgram } from './node-program.ts'
import type { Image } from './pod-process.ts'

const app = '/opt/context-cache-gateway'

/** What stands for the images of the gateway, of the engines, of Redis and of Envoy. */
export const projectImages = async (): Promise<Readonly<Record<string, Image>>> => {
  const runtime = await installLlamaRuntime({ env: process.env, toolsDir: toolsDir() })
  const models = join(toolsDir(), 'models')
  await mkdir(models, { recursive: true })
  const mounts = { ...nodeMount, [app]: packageRoot() }
  const tools = { env: process.env, toolsDir: toolsDir() }
  const [redis, envoy] = await Promise.all([findRedis(tools), findEnvoy(tools)])
  return {
    'in-cluster-redis': { entrypoint: redis.command },
    'envoyproxy/envoy': {
      entrypoint: ['envoy'],
      mounts: { '/opt/envoy': dirname(envoy.command[0]) },
      env: { PATH: `/opt/envoy:${process.env['PATH']}` },
    },
    'embedded-engine': {
      entrypoint: [nodeProgram, `${app}/dist/playground/engine/main.js`, ...flags({ runtime, 'model-dir': models })],
      mounts,
    },
    'context-cache-gateway': { entrypoint: [nodeProgram, `${app}/dist/src/main.js`], mounts },
  }
}

const metadata = (name: string) => ({ name, labels: { app: name } })

const deploymentOf = (name: string, replicas: number, spec: object, strategy?: object) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadata(name),
  spec: {
    replicas,
    ...(strategy === undefined ? {} : { strategy }),
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec },
  },
})

/** A headless Service of the pods with the label `app`. */
const service = (name: string, ...ports: readonly number[]) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(name),
  spec: {
    clusterIP: 'None',
    selector: { app: name },
    ports: ports.map((port) => ({ name: `p${port}`, port })),
  },
})

const yamlOf = (objects: readonly object[]): string =>
  objects.map((one) => stringify(one, { version: '1.1' })).join('---\n')

/** One pod behind the headless Service `name`. */
export const server = (name: string, ports: readonly number[], spec: object): string =>
  yamlOf([deploymentOf(name, 1, spec), service(name, ...ports)])

/** The claim that engines and gateways share. */
export const kvClaim = 'kv'
const kvVolumes = [{ name: 'kv', persistentVolumeClaim: { claimName: kvClaim } }]

/** A Redis that keeps its data, and the Secret `redis-url`. */
export const redis = (): string => {
  const flags = ['--dir', '/data', '--appendonly', 'yes', '--save', '', '--bind', '0.0.0.0', '--protected-mode', 'no']
  const container = {
    name: 'redis',
    image: 'in-cluster-redis',
    args: [...flags, '--port', '6379'],
    readinessProbe: { tcpSocket: { port: 6379 } },
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
  }
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'redis' } }]
  return yamlOf([
    deploymentOf('redis', 1, { containers: [container], volumes }, { type: 'Recreate' }),
    service('redis', 6379),
    { apiVersion: 'v1', kind: 'Secret', metadata: metadata('redis-url'), stringData: { url: 'redis://redis:6379' } },
  ])
}

/** Engines that share their KV, on port 8000; docs/kubernetes.md has their Service. */
export const engines = (options: { readonly replicas: number }): string => {
  const { replicas } = options
  const container = {
    name: 'engine',
    image: 'embedded-engine',
    args: flags({ name: '$(NAME)', 'kv-dir': '/kv', host: '0.0.0.0', port: 8000, slots: 16, 'context-tokens': 2048 }),
    env: [{ name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    readinessProbe: { httpGet: { path: '/health', port: 8000 }, periodSeconds: 1 },
    volumeMounts: [{ name: 'kv', mountPath: '/kv' }],
    // As docs/kubernetes.md says: an engine ends once its answers have.
    lifecycle: { preStop: { sleep: { seconds: 10 } } },
  }
  return yamlOf([
    deploymentOf('engines', replicas, {
      containers: [container],
      volumes: kvVolumes,
      terminationGracePeriodSeconds: 30,
    }),
  ])
}
