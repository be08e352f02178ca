import { z } from 'zod'
import {
  count,
  filePath,
  headerName,
  host,
  hostPort,
  listenPort,
  milliseconds,
  podAlias,
  redisUrl,
  remotePort,
  seconds,
  serverUrl,
} from './config-values.ts'
import { admission, responseCache } from './limit-options.ts'

/*
 * Beside its description an option may carry: `plainEnv`, a second environment variable that sets it; `secret`, how it is redacted
 * (`whole`, or the credentials of a `url`); `defaultText`, in words, where the default depends on other options.
 */

const tls = z
  .strictObject({
    certificate: filePath.describe(
      'File with the certificate of the port on which Envoy connects, in PEM. Read again when it changes.',
    ),
    key: filePath.describe('File with the private key of this certificate, in PEM.'),
    clientCa: filePath
      .optional()
      .describe(
        'File with the certificates of the authorities that sign clients, in PEM. With it every client needs a certificate (mTLS).',
      ),
  })
  .optional()

const listen = z
  .strictObject({
    extproc: z
      .strictObject({
        host: host
          .default('127.0.0.1')
          .describe('Address on which Envoy reaches the gateway (gRPC, encrypted only with `listen.extproc.tls`).'),
        port: listenPort.default(50051).describe('Port on which Envoy reaches the gateway; 0 takes any free one.'),
        socketPath: filePath
          .optional()
          .describe('Path of a Unix socket to listen on instead of host and port, for a gateway beside its Envoy.'),
        tls,
      })
      .prefault({}),
    admin: z
      .strictObject({
        host: host.default('127.0.0.1').describe('Address of the health, metrics and configuration pages.'),
        port: listenPort.default(9090).describe('Port of these pages; 0 takes any free one.'),
      })
      .prefault({}),
  })
  .prefault({})

const tenant = z
  .strictObject({
    secret: z.string().min(32).max(1024).optional().meta({
      description:
        'Key from which tenants, sealed ids and salts are derived, at least 32 characters, the same for every gateway process. Whoever changes it loses all sessions.',
      secret: 'whole',
      defaultText: 'made up at every start with the memory store; required with Redis',
    }),
    secretFile: filePath.optional().describe('File that holds the secret, instead of `tenant.secret`.'),
    principalHeader: headerName
      .optional()
      .describe(
        'Request header in which an authentication filter of Envoy names the verified caller. Only set it when Envoy strips it from clients. Without it a tenant is whoever sends the same Authorization header.',
      ),
  })
  .prefault({})

const sessions = z
  .strictObject({
    store: z.enum(['memory', 'redis']).optional().meta({
      description:
        'Where sessions are kept: in this process, which forgets them when it ends, or in Redis, which several gateways share.',
      defaultText: '`redis` when a URL is given, else `memory`',
    }),
    redisUrl: redisUrl.optional().meta({
      description: 'URL of Redis: `redis://user:password@host:port/database`, or `rediss://` for TLS.',
      plainEnv: 'REDIS_URL',
      secret: 'url',
    }),
    redisUrlFile: filePath.optional().describe('File that holds the URL, instead of `sessions.redisUrl`.'),
    keyPrefix: z
      .string()
      .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters without spaces')
      .default('ctx:')
      .describe('Put before every key in Redis.'),
    commandTimeoutMs: milliseconds
      .max(10_000)
      .default(250)
      .describe('How long Redis may take for one command before the turn goes on without its session.'),
    maxSessions: count.default(100_000).meta({
      description:
        'How many sessions the memory store holds at most. Beyond that the least recently used goes, weighted by size; none in a turn.',
      plainEnv: 'CTX_CACHE_MAXSIZE',
    }),
    memoryThreshold: z.number().min(0.1).max(1).default(0.85).meta({
      description:
        'Share of the process’s memory above which the memory store ends sessions, as at its limit. The lower of the heap’s and the container’s limit counts, after every full garbage collection.',
      plainEnv: 'CTX_CACHE_MEMORY_THRESHOLD',
    }),
    defaultTtlSeconds: seconds.default(3_600).meta({
      description: 'Time to live of a session that is created without one.',
      plainEnv: 'CTX_CACHE_TTL',
    }),
    minTtlSeconds: seconds.default(1).describe('Shortest time to live that may be asked for.'),
    maxTtlSeconds: seconds.default(604_800).describe('Longest time to live that may be asked for.'),
    sliding: z
      .boolean()
      .default(false)
      .describe('Whether every completed turn makes the time to live count anew; else it counts from the creation.'),
    tombstoneSeconds: seconds
      .default(86_400)
      .describe('How long an expired or deleted session is remembered as such, and an expired one can start anew.'),
    unknownSession: z
      .enum(['miss', 'reject'])
      .default('miss')
      .describe(
        'What becomes of a turn whose session is unknown, expired or deleted: it runs in full, or is answered with 404 or 410.',
      ),
  })
  .prefault({})

const turns = z
  .strictObject({
    leaseSeconds: seconds
      .max(86_400)
      .default(660)
      .describe(
        'How long a turn counts as running when its end is never told. Must exceed the timeout of Envoy’s routes to the engines.',
      ),
    maxBodyBytes: z
      .int()
      .min(1_024)
      .max(1_073_741_824)
      .default(16_777_216)
      .describe('Largest body of a request that creates a session. Envoy’s own limit for it must not be lower.'),
    maxJsonDepth: z.int().min(1).max(1_024).default(64).describe('Deepest nesting in such a body.'),
    maxJsonKeys: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(20_000)
      .describe('Most keys, and most arrays and objects, in such a body, at all depths.'),
  })
  .prefault({})

const dns = z.strictObject({
  name: host.describe('DNS name whose addresses are the pods, instead of `routing.pods`.'),
  port: remotePort.describe('Port of every pod behind the name; required with it.'),
  refreshIntervalMs: milliseconds.default(5_000).describe('Time between two look-ups of the name.'),
  lookupTimeoutMs: milliseconds.default(2_000).describe('How long a look-up may take.'),
})

const routing = z
  .strictObject({
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
      .describe('How a turn’s pod is chosen, unless its `routing-strategy` header names another policy.'),
    pods: z
      .array(hostPort)
      .refine((pods) => new Set(pods).size === pods.length, 'lists a pod twice')
      .default([])
      .meta({
        description: 'The engines, each `host:port` exactly as Envoy’s cluster has it.',
        plainEnv: 'PODS',
      }),
    dns: dns.optional(),
    healthIntervalMs: milliseconds.min(10).default(1_000).describe('Time between two checks of a pod.'),
    healthTimeoutMs: milliseconds.default(1_000).describe('How long a check of a pod may take.'),
    stickinessFactor: z
      .number()
      .min(1)
      .max(1_000)
      .default(2)
      .describe(
        'A session leaves its pod when the pod’s load exceeds this many times the least load of any pod, plus the margin.',
      ),
    stickinessMargin: z
      .number()
      .min(0)
      .max(100_000)
      .default(4)
      .describe('Requests by which a pod’s load may always exceed the least load before sessions leave it.'),
  })
  .prefault({})

const lmcache = z
  .strictObject({
    url: serverUrl.optional().meta({
      description: 'The LMCache coordinator of the fleet. Required with `lmcache`.',
      plainEnv: 'LMCACHE_URL',
    }),
    instances: z.array(podAlias).default([]).meta({
      description:
        'The LMCache instance of each pod, as `host:port=instance-id`. Needed for pods whose LMCache server does not have their IP address to itself.',
      plainEnv: 'LMCACHE_INSTANCES',
    }),
    worldSize: z
      .int()
      .min(1)
      .max(1_024)
      .default(1)
      .describe('Workers over which the model is spread: tensor times pipeline parallel size.'),
  })
  .prefault({})

const kv = z
  .strictObject({
    connector: z.enum(['llamacpp-slots', 'lmcache', 'warmup', 'none']).default('llamacpp-slots').meta({
      description:
        'How KV gets into pods and out of them: the slot interface of llama-server and the embedded engine; LMCache beside vLLM; a request for one token ahead of the turn, for engines with a prefix cache and no store; or not at all.',
      plainEnv: 'CONNECTOR',
    }),
    directory: filePath.optional().meta({
      description: 'Folder of stored KV, shared with all pods. Required with `llamacpp-slots`.',
      plainEnv: 'KV_DIR',
    }),
    storeModule: filePath
      .optional()
      .describe(
        'Path of an ES module that exports `createArtefactStore`: KV of `llamacpp-slots` rests there between turns, and only passes through the folder.',
      ),
    isolation: z
      .enum(['tenant', 'session'])
      .default('tenant')
      .describe(
        'Who shares KV with `lmcache` and `warmup`: all sessions of a tenant, so that what their prompts have in common is computed and stored once, or nobody.',
      ),
    events: z
      .enum(['auto', 'off'])
      .default('auto')
      .describe(
        'Whether to follow the KV events of vLLM pods that publish them (`lmcache` only). Without them KV is isolated per session, whatever `kv.isolation` says.',
      ),
    lmcache,
    loadBudgetMs: milliseconds
      .max(60_000)
      .default(10_000)
      .describe('Longest time a turn ever waits for its KV; mostly it waits no longer than computing it would take.'),
    prefillMsPerToken: z
      .number()
      .min(0.0001)
      .max(1_000)
      .default(1)
      .describe('What computing one token of a prompt is taken to cost until it has been measured, milliseconds.'),
    callTimeoutMs: milliseconds
      .max(600_000)
      .default(10_000)
      .describe('How long a pod may take to store, free or list KV.'),
    minTokens: z.int().min(1).max(1_000_000).default(1).describe('Contexts of fewer tokens are not stored.'),
    maxStoreBytes: z
      .int()
      .min(1_024)
      .max(1_125_899_906_842_624)
      .optional()
      .describe(
        'Most bytes of KV that `llamacpp-slots` keeps stored, over all sessions; the same for every gateway. Beyond that, KV of sessions whose time is over goes, then what was used least recently, weighted by size; nothing of a session in a turn.',
      ),
    storeThreshold: z
      .number()
      .min(0.1)
      .max(1)
      .default(0.85)
      .describe(
        'Share of `kv.maxStoreBytes` down to which stored KV is brought with every sweep, and the largest single piece of KV.',
      ),
  })
  .prefault({})

const reaper = z
  .strictObject({
    intervalMs: milliseconds.default(1_000).describe('Time between two sweeps for expired sessions and KV to remove.'),
    batchSize: z.int().min(1).max(10_000).default(100).describe('Most removals that a sweep takes on at once.'),
    removalLeaseMs: milliseconds
      .default(30_000)
      .describe('When another gateway may take over a removal that was taken on and not finished.'),
    retryDelayMs: milliseconds
      .default(200)
      .describe('How long a removal waits when its KV is still in use; doubles with every try, up to 30 s.'),
    announceGraceMs: milliseconds
      .default(60_000)
      .describe('When KV that was announced and never committed is removed: after a gateway died in between.'),
  })
  .prefault({})

const log = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('Least important lines that are written.'),
  })
  .prefault({})

/** Every option of the gateway: its place, type, limits, default and meaning. Unknown names are refused. */
export const configSchema = z.strictObject({
  listen,
  tenant,
  sessions,
  turns,
  routing,
  kv,
  admission,
  reaper,
  responseCache,
  log,
})

/** The options as the schema leaves them, before what depends on other options is filled in. */
export type ParsedConfig = z.output<typeof configSchema>
