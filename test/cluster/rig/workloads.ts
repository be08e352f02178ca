import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { installLlamaRuntime } from '../../../playground/install/install-llama-runtime.ts'
import { packageRoot, toolsDir } from '../../../playground/paths.ts'
import type { Image } from './pod-process.ts'

const app = '/opt/context-cache-gateway'

/** What stands for the images of the gateway and of the engines. */
export const projectImages = async (): Promise<Readonly<Record<string, Image>>> => {
  const runtime = await installLlamaRuntime({ env: process.env, toolsDir: toolsDir() })
  const models = join(toolsDir(), 'models')
  await mkdir(models, { recursive: true })
  const mounts = { [app]: packageRoot() }
  return {
    'embedded-engine': {
      entrypoint: [
        process.execPath,
        `${app}/dist/playground/engine/main.js`,
        '--runtime',
        runtime,
        '--model-dir',
        models,
      ],
      mounts,
    },
    'context-cache-gateway': { entrypoint: [process.execPath, `${app}/dist/src/main.js`], mounts },
  }
}

const metadata = (name: string) => ({ name, labels: { app: name } })

const deploymentOf = (name: string, replicas: number, spec: object) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadata(name),
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec },
  },
})

const service = (name: string, port: number) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(name),
  spec: {
    clusterIP: 'None',
    selector: { app: name },
    ports: [{ name: 'main', port }],
  },
})

const yamlOf = (objects: readonly object[]): string => objects.map((one) => stringify(one)).join('---\n')

/** Pods with the label `app`. */
export const deployment = (name: string, replicas: number, spec: object): string =>
  stringify(deploymentOf(name, replicas, spec))

/** The claim that engines and gateways share. */
export const kvClaim = 'kv'
const kvVolumes = [{ name: 'kv', persistentVolumeClaim: { claimName: kvClaim } }]

/** Engines that share their KV, behind the Service `engines` on port 8000. */
export const engines = (options: { readonly replicas: number }): string => {
  const { replicas } = options
  const container = {
    name: 'engine',
    image: 'embedded-engine',
    args: [
      '--name',
      '$(NAME)',
      '--kv-dir',
      '/kv',
      '--host',
      '0.0.0.0',
      '--port',
      '8000',
      '--slots',
      '4',
      '--context-tokens',
      '4096',
    ],
    env: [{ name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    readinessProbe: { httpGet: { path: '/health', port: 8000 }, periodSeconds: 1 },
    volumeMounts: [{ name: 'kv', mountPath: '/kv' }],
  }
  return yamlOf([
    deploymentOf('engines', replicas, {
      containers: [container],
      volumes: kvVolumes,
      terminationGracePeriodSeconds: 5,
    }),
    service('engines', 8000),
  ])
}
