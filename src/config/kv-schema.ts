import { z } from 'zod'
import {
  bytes,
  decimal,
  filePath,
  group,
  integer,
  milliseconds,
  podAlias,
  serverUrl,
  share,
} from '../options/values.ts'

const lmcache = group({
  url: serverUrl.optional().meta({
    description: 'URL of the LMCache coordinator. Required with `lmcache`.',
    plainEnv: 'LMCACHE_URL',
  }),
  instances: z.array(podAlias).default([]).meta({
    description:
      'LMCache instances of pods, as `host:port=instance-id`. Needed where several LMCache servers share an IP address.',
    plainEnv: 'LMCACHE_INSTANCES',
  }),
  worldSize: integer(1, 1_024)
    .default(1)
    .describe('Workers per model: tensor parallel size times pipeline parallel size.'),
})

const prefixCache = group({
  engine: z
    .enum(['vllm', 'sglang'])
    .default('vllm')
    .describe('Engine whose salt fields `prefix-cache` sets: `cache_salt`, and with `sglang` also `extra_key`.'),
  saltFields: z
    .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'must be the name of a body member'))
    .min(1)
    .optional()
    .meta({
      description:
        'Members of a request body that `prefix-cache` sets to the salt, for another engine. They must keep KV of different values apart.',
      defaultText: 'by `kv.prefixCache.engine`',
    }),
})

/** Options of the KV connectors. */
export const kv = group({
  connector: z.enum(['llamacpp-slots', 'lmcache', 'prefix-cache', 'none']).default('llamacpp-slots').meta({
    description:
      'How KV is loaded and stored: slots of llama-server and the embedded engine; LMCache with vLLM; `prefix-cache`: the engine’s own prefix cache, kept apart by salts; or not at all.',
    plainEnv: 'CONNECTOR',
  }),
  connectorModule: filePath
    .optional()
    .describe('Path of an ES module that exports `createKvConnector`: another connector, instead of `kv.connector`.'),
  directory: filePath.optional().meta({
    description: 'Folder of stored KV, shared with all pods. Required with `llamacpp-slots`.',
    plainEnv: 'KV_DIR',
  }),
  storeModule: filePath
    .optional()
    .describe(
      'Path of an ES module that exports `createArtefactStore`, which stores KV of `llamacpp-slots` instead of the folder.',
    ),
  isolation: z
    .enum(['tenant', 'session'])
    .default('tenant')
    .describe(
      'Scope in which `lmcache` and `prefix-cache` share KV of equal prefixes: all sessions of a tenant, or one session.',
    ),
  events: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe('Whether `lmcache` subscribes to the KV events of vLLM pods. Without them KV is isolated per session.'),
  lmcache,
  prefixCache,
  loadBudgetMs: milliseconds
    .max(60_000)
    .default(10_000)
    .describe('Longest wait of a turn for its KV. It never waits longer than computing the KV is predicted to take.'),
  prefillMsPerToken: decimal(0.0001, 1_000)
    .default(1)
    .describe('Assumed time to compute one prompt token until it is measured, milliseconds.'),
  callTimeoutMs: milliseconds
    .max(600_000)
    .default(10_000)
    .describe('Timeout of a call to a pod that stores, frees or lists KV.'),
  minTokens: integer(1, 1_000_000).default(1).describe('Contexts of fewer tokens are not stored.'),
  maxStoreBytes: bytes(1_024, 1_125_899_906_842_624)
    .optional()
    .describe(
      'Most bytes of stored KV with `llamacpp-slots`. The same for every gateway. Beyond, KV of expired sessions is removed, then the least recently used, weighted by size; never KV of a session in a turn.',
    ),
  storeThreshold: share
    .default(0.85)
    .describe(
      'Share of `kv.maxStoreBytes` to which each sweep reduces stored KV, and the most that one session may store.',
    ),
})
