import { z } from 'zod'
import { apiKey, filePath, group, host, hostPort, integer, milliseconds } from '../options/values.ts'
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

export const models = z.array(z.string().min(1)).default([])

const access = {
  https: z.boolean().default(false).describe('Whether the gateway’s own calls to the engines use HTTPS.'),
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
}

/** How the engines of the default pool are reached. */
export const engines = group(access)

/** A further pool. Its options mean what those of the default pool mean: `routing.pods`, `routing.dns`, `routing.models`, `engines`, `kv`. */
const pool = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower case letters, digits and hyphens'),
  models,
  pods,
  dns: dns.optional(),
  ...access,
  kv,
})

export const pools = z.array(pool).default([])
