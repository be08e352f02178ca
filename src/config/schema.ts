import { z } from 'zod'
import { envoyBodyBytes } from '../options/envoy-body-bytes.ts'
import {
  adminToken,
  bytes,
  decimal,
  filePath,
  flag,
  group,
  headerName,
  host,
  integer,
  listenPort,
  milliseconds,
  seconds,
  share,
  tenantSecret,
} from '../options/values.ts'
import { modelPriority, requirement, resourceCount, resourceName } from './admission-values.ts'
import { kv } from './kv-schema.ts'
import { dns, engines, kubernetes, models, pods, pools } from './pool-schema.ts'
import { redisShape } from './redis-schema.ts'
import { log, traces } from './telemetry-schema.ts'

/*
 * Metadata of an option: `plainEnv`, a second variable for it; `defaultText`, the default in words where it depends on
 * other options; `unit`, what its number counts; `secret`: neither quoted in messages nor shown, `whole` or, of a URL, its
 * `credentials`.
 */

const tls = z.strictObject({
  certificate: filePath.describe('PEM file with the certificate of the gRPC port. Reloaded when it changes.'),
  key: filePath.describe('PEM file with the private key of the certificate. Reloaded when it changes.'),
  clientCa: filePath
    .optional()
    .describe('PEM file with the authorities that sign client certificates. With it, every client needs one (mTLS).'),
})

const listen = group({
  extproc: group({
    host: host
      .default('127.0.0.1')
      .describe('Address of the gRPC port for Envoy. Encrypted only with `listen.extproc.tls`.'),
    port: listenPort.default(50051).describe('gRPC port for Envoy; 0: any free one.'),
    socketPath: filePath.optional().describe('Path of a Unix socket to listen on instead of host and port.'),
    tls: tls.optional(),
    selfSigned: flag(
      'Encrypts the gRPC port with a certificate made at each start, as endpoint pickers do. Clients cannot verify it: prefer `listen.extproc.tls`, which takes precedence.',
    ),
    drainMs: milliseconds
      .default(10_000)
      .describe(
        'Longest time that running requests have to end after SIGTERM. As endpoint picker the gateway carries every answer: as long as the longest one.',
      ),
  }),
  admin: group({
    host: host.default('127.0.0.1').describe('Address of the health, metrics and configuration pages.'),
    port: listenPort.default(9090).describe('Port of the pages; 0: any free one.'),
    token: adminToken
      .optional()
      .describe(
        'Credential of operators for the console and `/api`, as a bearer token. Without it these answer on a loopback address alone. Health and metrics need none.',
      ),
    tokenFile: filePath.optional().describe('File that holds the token, instead of `listen.admin.token`.'),
  }),
})

const tenant = group({
  secret: tenantSecret.optional().meta({
    description:
      'Key from which tenants, sealed ids and salts are derived. The same for every gateway. A change loses all sessions.',
    defaultText: 'random at every start with the memory store; required with Redis',
  }),
  secretFile: filePath.optional().describe('File that holds the secret, instead of `tenant.secret`.'),
  previousSecret: tenantSecret
    .optional()
    .describe(
      'Another secret that is accepted while the secret is rotated: sessions that began under it live on. See [rotation](tenants.md#rotating-the-secret).',
    ),
  previousSecretFile: filePath.optional().describe('File that holds it, instead of `tenant.previousSecret`.'),
  limits: group({
    maxSessions: integer(1, 10_000_000)
      .optional()
      .describe(
        'Live sessions of a tenant at most, over all gateways. Default: no limit. See [tenants](tenants.md#limits).',
      ),
    maxStoredBytes: bytes(1, 1_000_000_000_000_000)
      .optional()
      .describe('Stored KV of a tenant at most, over all gateways. Default: no limit.'),
    maxTurns: integer(1, 1_000_000)
      .optional()
      .describe('Turns of sessions of a tenant at a time at most, over all gateways. Default: no limit.'),
  }),
  principalHeader: headerName
    .optional()
    .describe(
      'Request header with the caller, as verified by an authentication filter of Envoy, which must strip it from clients. Without it the credential identifies the tenant: `Authorization`, `x-api-key` or `api-key`.',
    ),
  principalFromAnyPeer: flag(
    'Accepts `tenant.principalHeader` on a gRPC port that is neither a Unix socket, nor on a loopback address, nor asks for client certificates. Whoever reaches the port can then be any tenant: only where a network policy lets Envoy alone connect.',
  ),
})

/** As the only entry: clients' names do not count. */
export const noNames = 'off'

/** A header, in lower case, or a member of the body. */
const sessionName = z
  .string()
  .regex(/^(?:body\.[A-Za-z0-9_-]{1,64}|[a-z0-9][a-z0-9_-]{0,63})$/, 'must be a header in lower case, or body.member')

const implicit = group({
  names: z
    .array(sessionName)
    .max(32)
    .default([
      'x-claude-code-session-id',
      'thread-id',
      'session-id',
      'x-session-affinity',
      'agent-session-id',
      'x-opencode-session',
      'x-affinity',
      'x-openwebui-chat-id',
      'x-session-id',
    ])
    .refine((names) => names.length === 1 || !names.includes(noNames), `${noNames} stands alone`)
    .describe(
      'Headers, and members of the body as `body.prompt_cache_key`, in which clients name their conversation, in the order in which they count. Envoy’s routes must have the same headers, and its Lua filter finds the members; an endpoint picker reads whole bodies for members. `off` alone: no name counts.',
    ),
  ttlSeconds: seconds
    .default(3_600)
    .describe('Time to live of a session that a name chooses. Each completed turn restarts it.'),
  maxPerTenant: integer(1, 1_000_000)
    .default(1_000)
    .describe('Most sessions of a tenant that names choose. Beyond, the least recently used one ends.'),
})

const sessions = group({
  store: z.enum(['memory', 'redis']).optional().meta({
    description:
      'Store of the sessions: the memory of this process, or Redis, which outlives it and is shared by gateways.',
    defaultText: '`redis` when a Redis is given, else `memory`',
  }),
  ...redisShape,
  keyPrefix: z
    .string()
    .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters without spaces')
    .default('ctx:')
    .describe('Prefix of every key in Redis.'),
  partitions: integer(1, 1024).optional().meta({
    description:
      'Into how many partitions the sessions in Redis are split, which the nodes of a cluster share. Fixed by the first gateway that starts with this prefix. See [partitions](redis.md#partitions).',
    defaultText: 'as many as there are; of a new store 64 in a cluster, else 1',
  }),
  commandTimeoutMs: milliseconds
    .max(10_000)
    .default(250)
    .describe(
      'Timeout of a Redis command, after which a turn continues without its session. Less than `message_timeout` of Envoy (2 s in envoy.yaml), else Envoy gives the turn up first.',
    ),
  maxSessions: integer(1, 10_000_000).default(100_000).meta({
    description:
      'Most sessions in the memory store. Beyond, the least recently used, weighted by size, is evicted; never one in a turn.',
    plainEnv: 'CTX_CACHE_MAXSIZE',
  }),
  memoryThreshold: share.default(0.85).meta({
    description:
      'Share of the memory limit (the lower of heap and container), above which the memory store evicts sessions. Checked after each full garbage collection.',
    plainEnv: 'CTX_CACHE_MEMORY_THRESHOLD',
  }),
  defaultTtlSeconds: seconds.default(3_600).meta({
    description: 'Time to live of a session whose create names none.',
    plainEnv: 'CTX_CACHE_TTL',
  }),
  minTtlSeconds: seconds.default(1).describe('Shortest time to live that a request may ask for.'),
  maxTtlSeconds: seconds.default(604_800).describe('Longest time to live that a request may ask for.'),
  sliding: flag('Whether each completed turn restarts the time to live. Otherwise it counts from the create.'),
  tombstoneSeconds: seconds
    .default(86_400)
    .describe('How long an expired or deleted session is known as such, and an expired one can be revived.'),
  implicit,
  unknownSession: z
    .enum(['miss', 'reject'])
    .default('miss')
    .describe(
      'A turn whose session is unknown, expired or deleted runs in full (`miss`), or is answered with 404 or 410.',
    ),
})

const turns = group({
  leaseSeconds: seconds
    .max(86_400)
    .default(660)
    .describe(
      'How long a turn counts as running if no end is reported. Must exceed the timeout of Envoy’s routes to the engines.',
    ),
  maxBodyBytes: bytes(1_024, 1_073_741_824)
    .default(envoyBodyBytes)
    .describe('Largest body of a create. Envoy’s limit must not be lower.'),
  maxJsonDepth: integer(1, 1_024).default(64).describe('Deepest nesting of the body of a create.'),
  maxJsonKeys: integer(1, 1_000_000)
    .default(20_000)
    .describe('Most keys, and most arrays and objects, in the body of a create.'),
})

const routing = group({
  policy: z
    .enum([
      'predicted-ttft',
      'prefix-cache',
      'session-affinity',
      'least-request',
      'least-kv-cache',
      'round-robin',
      'random',
    ])
    .default('predicted-ttft')
    .describe('Policy that picks the pod of a turn, unless its header `routing-strategy` names another.'),
  pods: pods.meta({
    description: 'The engines, each `host:port` exactly as in Envoy’s cluster.',
    plainEnv: 'PODS',
  }),
  dns: dns.optional(),
  kubernetes: kubernetes.optional(),
  models: models.describe(
    'Names of models that these engines serve. Others are answered with 404. Default: learnt from `GET /v1/models` of each engine.',
  ),
  healthIntervalMs: milliseconds.min(10).default(1_000).describe('Time between two health checks of a pod.'),
  healthTimeoutMs: milliseconds.default(1_000).describe('Timeout of a health check.'),
  stickinessFactor: decimal(1, 1_000)
    .default(2)
    .describe('A session leaves its pod if the pod’s load exceeds the least load times this, plus the margin.'),
  stickinessMargin: decimal(0, 100_000)
    .default(4)
    .describe('Requests by which a pod’s load may always exceed the least load before sessions leave it.'),
})

const admission = group({
  requirements: z
    .array(requirement)
    .default([])
    .describe(
      'Resources that work requires, by kind, or by kind and model: `prefill=R1:1`, `prefill/my-model=R1:4 R2:1`, `load=R3:1`. `prefill` holds them from before a turn is forwarded to its end; `load` while KV is loaded into a pod. Empty: admission control is off.',
    ),
  resources: z
    .array(resourceCount)
    .default([])
    .describe(
      'Copies of a resource: `R1:10` at every pod, or of a global one; `R2:5:0` or `R2:5:ip:port` at one pod, by index in `routing.pods` (with `pools`: in the list of all pods) or by address. Default: the largest requirement.',
    ),
  globalResources: z
    .array(resourceName)
    .default([])
    .describe('Resources that all pods share. Every pod has copies of the others.'),
  priorities: z.array(modelPriority).default([]).describe('Priorities of models, as `my-model=2`. 1 is the highest.'),
  objectives: z
    .array(modelPriority)
    .default([])
    .describe(
      'Priorities of InferenceObjectives, as `my-objective=1`. A request names its objective in `x-gateway-inference-objective`; it takes precedence over the model.',
    ),
  defaultPriority: integer(1, 999_999_999).default(1).describe('Priority of every other model.'),
  maxWaiting: integer(0, 10_000)
    .default(1_000)
    .describe(
      'Most turns and loads that wait. Beyond, the last in the order goes on without a slot, or is refused where it lacks resources.',
    ),
  maxWaitMs: milliseconds
    .max(600_000)
    .default(5_000)
    .describe('Longest wait of a turn for resources, after which it is refused.'),
  messageTimeoutMs: milliseconds
    .default(120_000)
    .describe(
      'Longest time that Envoy waits for a decision: `max_message_timeout` of its ext_proc filter. What `kv.loadBudgetMs` leaves of it a turn may wait for a slot.',
    ),
})

const responseCache = group({
  models: z
    .array(z.string().min(1))
    .default([])
    .describe('Models whose deterministic requests may be answered from the response cache.'),
  maxBytes: bytes(0, 1_000_000_000_000)
    .default(0)
    .describe(
      'Size of the response cache in memory, for all models; 0: off. Answers that are being collected may take as much again.',
    ),
  maxEntryBytes: bytes(1_024, 1_073_741_824)
    .default(1_048_576)
    .describe('Largest size of an answer with its request. A larger answer is not cached.'),
})

const responses = group({
  store: flag(
    'Whether responses and conversations are kept for `previous_response_id` and `conversation`, in the store of the sessions, encrypted. See [responses](responses.md).',
  ),
  maxItemBytes: bytes(1_024, 16_777_216)
    .default(1_048_576)
    .describe('Largest item of a conversation, and largest response object, that is kept.'),
  maxConversationBytes: bytes(1_024, 1_073_741_824)
    .default(8_388_608)
    .describe('Items that one conversation, or one chain of responses, may have, as JSON.'),
  maxTenantBytes: bytes(4_096, 1_000_000_000_000)
    .default(268_435_456)
    .describe(
      'What is kept of a tenant at most, over all gateways: compressed and encrypted, with 512 bytes for each turn.',
    ),
  maxMemoryBytes: bytes(4_096, 1_000_000_000_000)
    .default(268_435_456)
    .describe('What the memory store keeps at most, of all tenants together. Beyond, nothing more is kept.'),
})

const reaper = group({
  intervalMs: milliseconds.default(1_000).describe('Time between two sweeps for expired sessions and KV to remove.'),
  batchSize: integer(1, 10_000).default(100).describe('Most removals that run at once.'),
  removalLeaseMs: milliseconds
    .default(30_000)
    .describe('Time after which another gateway retries an unfinished removal. One takes no longer, and at most 10 s.'),
  retryDelayMs: milliseconds
    .default(200)
    .describe('Delay of a removal whose KV is in use. Doubles with each attempt, up to 30 s.'),
  announceGraceMs: milliseconds
    .default(60_000)
    .describe('Age at which KV that was announced but never committed, because a gateway died, is removed.'),
})

/** Every option of the gateway, with type, limits, default and meaning. Unknown names are refused. */
export const configSchema = z.strictObject({
  listen,
  tenant,
  sessions,
  turns,
  routing,
  engines,
  kv,
  pools: pools.describe(
    'Further pools of engines, each with a name, models, pods, dns or kubernetes, engine options and kv: see [Pools](#pools).',
  ),
  admission,
  reaper,
  responseCache,
  responses,
  traces,
  log,
})

/** Parsed options, before defaults that depend on other options. */
export type ParsedConfig = z.output<typeof configSchema>
