import { z } from 'zod'
import { apiKey, filePath, flag, group, host, hostPort, integer, milliseconds } from '../options/values.ts'
import { kv } from './kv-schema.ts'

export const pods = z
  .array(hostPort)
  .refine((addresses) => new Set(addresses).size === addresses.length, 'lists a pod twice')
  .default([])

export const dns = z.strictObject({
  name: host.describe('DNS name that resolves to the pods, instead of `routing.pods`.'),
  port: integer(1, 65_535).describe('Port of every pod behind the name. Required with it.'),
  refreshIntervalMs: milliseconds.default(5_000).describe('Time between two lookups of the name.'),
  lookupTimeoutMs: milliseconds.default(2_000).describe('Timeout of a lookup.'),
})

const kubernetesName = z.string().regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, 'must be a name of Kubernetes')
const labelKey = z
  .string()
  .regex(/^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, 'must be a label')

export const kubernetes = z.strictObject({
  namespace: kubernetesName
    .optional()
    .describe('Namespace of the pods. Default: that of the gateway’s own pod, or of the kubeconfig’s context.'),
  service: kubernetesName
    .optional()
    .describe(
      'Service whose EndpointSlices list the pods, instead of `routing.pods`; the other ways are the next two.',
    ),
  selector: z.string().min(1).max(4_096).optional().describe('Label selector of the pods, as `kubectl -l` takes it.'),
  inferencePool: kubernetesName.optional().describe('InferencePool whose selector and ports name the pods.'),
  ports: z
    // A variable holds texts.
    .array(z.coerce.number().int().min(1).max(65_535))
    .default([])
    .describe('Ports of each pod; each is an engine. Required with `selector`. Default: those of the service or pool.'),
  modelLabel: labelKey
    .optional()
    .describe('Label that names the model of a pod (of a service, the service’s label). Default: what engines list.'),
  instanceLabel: labelKey
    .optional()
    .describe('Label that holds the id of the pod’s LMCache instance. Default: by IP address.'),
  resyncMs: milliseconds
    .min(1_000)
    .default(60_000)
    .describe('Time after which the whole list is read again, besides every change as it comes.'),
  timeoutMs: milliseconds.default(10_000).describe('Timeout of reading the list.'),
  kubeconfigFile: filePath
    .optional()
    .describe('Kubeconfig of the API server. Default: the service account of the pod that the gateway runs in.'),
})

export const models = z.array(z.string().min(1)).default([])

const access = {
  https: flag('Whether the gateway’s own calls to the engines use HTTPS.'),
  caFile: filePath
    .optional()
    .describe('PEM file with the authorities that sign the engines’ certificates. Default: those of Node.js.'),
  serverName: host.optional().describe('Name in the engines’ certificates. Default: the host of each pod.'),
  apiKey: apiKey
    .optional()
    .describe(
      'Key that engines ask for (`--api-key`). The gateway sends it with its own calls; a client’s request keeps its own credential.',
    ),
  apiKeyFile: filePath.optional().describe('File that holds the key, instead of `engines.apiKey`.'),
  responsesApi: z
    .enum(['native', 'chat'])
    .default('native')
    .describe(
      '`chat`: the engines have /v1/chat/completions but no /v1/responses, whose turns are [translated](responses-over-chat.md). Needs `responses.store`.',
    ),
}

/** How the engines of the default pool are reached. */
export const engines = group(access)

/** A further pool. Its options mean what the same names in `routing`, `engines` and `kv` mean for the default pool. */
const pool = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower case letters, digits and hyphens'),
  models,
  pods,
  dns: dns.optional(),
  kubernetes: kubernetes.optional(),
  ...access,
  kv,
})

export const pools = z.array(pool).default([])
