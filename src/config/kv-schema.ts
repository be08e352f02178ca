import { z } from 'zod'
import { connectorOptions, connectors } from '../kvcache/registry.ts'
import { decimal, filePath, group, integer, milliseconds } from '../options/values.ts'

/** Options of stored KV, with those that each connector defines. */
export const kv = group({
  connector: z
    .enum(connectors.map(({ name }) => name))
    .default('llamacpp-slots')
    .meta({
      description: `How KV is loaded and stored. ${connectors.map(({ name, summary }) => `\`${name}\`: ${summary}`).join('; ')}.`,
      plainEnv: 'CONNECTOR',
    }),
  connectorModule: filePath
    .optional()
    .describe('Path of an ES module that exports `connector`: another connector, instead of `kv.connector`.'),
  directory: filePath.optional().meta({
    description: 'Folder of stored KV, shared with all pods. Required with `llamacpp-slots`.',
    plainEnv: 'KV_DIR',
  }),
  isolation: z
    .enum(['tenant', 'session'])
    .default('tenant')
    .describe(
      'Scope in which `lmcache` and `prefix-cache` share KV of equal prefixes: all sessions of a tenant, or one session.',
    ),
  modelVersion: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Any text that names the weights. With another one, stored KV is not loaded, and is removed: change it with the weights of a model whose name and shape stay.',
    ),
  loadBudgetMs: milliseconds
    .max(60_000)
    .default(30_000)
    .describe(
      'Longest wait for KV at a pod, never longer than computing it there is predicted to take, or 1 s, if that is more.',
    ),
  prefillMsPerToken: decimal(0.0001, 1_000)
    .default(1)
    .describe('Assumed time to compute one prompt token until streamed answers have shown it, milliseconds.'),
  callTimeoutMs: milliseconds
    .max(600_000)
    .default(10_000)
    .describe('Timeout of a call to a pod that stores, frees or lists KV.'),
  minTokens: integer(1, 1_000_000).default(1).describe('Contexts of fewer tokens are not stored. Not for `lmcache`.'),
  ...connectorOptions,
})
