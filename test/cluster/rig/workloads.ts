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

const service = (name: string, port: number, protocol?: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(name),
  spec: {
    clusterIP: 'None',
    selector: { app: name },
    ports: [{ name: 'main', port, ...(protocol === undefined ? {} : { appProtocol: protocol }) }],
  },
})

const yamlOf = (objects: readonly object[]): string => objects.map((one) => stringify(one)).join('---\n')

/** Pods with the label `app`. */
export const deployment = (name: string, replicas: number, spec: object): string =>
  stringify(deploymentOf(name, replicas, spec))

/** Engines that share a folder of this machine, behind the Service `engines` on port 8000. */
export const engines = (options: { readonly kvDirectory: string; readonly replicas: number }): string => {
  const { kvDirectory, replicas } = options
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
  const volumes = [{ name: 'kv', hostPath: { path: kvDirectory } }]
  return yamlOf([
    deploymentOf('engines', replicas, { containers: [container], volumes, terminationGracePeriodSeconds: 5 }),
    service('engines', 8000),
  ])
}

/** Gateways behind the Service `context-cache-gateway`, which find the engines through the API server, with the least role. */
export const gateways = (options: {
  readonly kvDirectory: string
  readonly replicas: number
  readonly env: Readonly<Record<string, string>>
}): string => {
  const name = 'context-cache-gateway'
  const env = {
    CTX_LISTEN_EXTPROC_HOST: '0.0.0.0',
    CTX_LISTEN_ADMIN_HOST: '0.0.0.0',
    CTX_TENANT_SECRET: 'a secret of the cluster tests that is long enough',
    CTX_KV_PREFILL_MS_PER_TOKEN: '1000',
    KV_DIR: '/kv',
    ...options.env,
  }
  const container = {
    name: 'gateway',
    image: name,
    args: ['serve'],
    env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
    readinessProbe: { grpc: { port: 50051, service: 'envoy.service.ext_proc.v3.ExternalProcessor' }, periodSeconds: 1 },
    volumeMounts: [{ name: 'kv', mountPath: '/kv' }],
  }
  const account = { kind: 'ServiceAccount', name }
  const rules = [
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['inference.networking.k8s.io'], resources: ['inferencepools'], verbs: ['get', 'list', 'watch'] },
  ]
  const rbac = 'rbac.authorization.k8s.io'
  return yamlOf([
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata(name) },
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: metadata(name), rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: metadata(name),
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects: [{ ...account, namespace: 'default' }],
    },
    deploymentOf(name, options.replicas, {
      serviceAccountName: name,
      enableServiceLinks: false,
      containers: [container],
      volumes: [{ name: 'kv', hostPath: { path: options.kvDirectory } }],
    }),
    service(name, 50051, 'kubernetes.io/h2c'),
  ])
}
