import { describe, expect, test } from '@jest/globals'
import {
  coordinatorPlan,
  type FleetPlan,
  lmcachePlan,
  serverEnvironment,
  vllmPlan,
} from '../../../../playground/vllm/server-plans.ts'

const pods = [
  { vllm: 8101, lmcache: 9101, queue: 5551 },
  { vllm: 8102, lmcache: 9102, queue: 5552 },
] as const
const plan: FleetPlan = {
  interpreter: '/p/bin/python',
  folder: '/run/vllm',
  modelPath: 'models/small',
  coordinatorPort: 9200,
  pods,
  workFolder: '/run/vllm/work',
  socketFolder: '/tmp/ctx-vllm-1-aa',
  fleetName: 'ctx-vllm-1-aa',
}

/** The value after a flag, as JSON where it is JSON. */
const flagValue = (command: readonly string[], flag: string): unknown => {
  const value = command[command.indexOf(flag) + 1] ?? ''
  return value.startsWith('{') ? JSON.parse(value) : value
}

describe('command lines', () => {
  test.each([
    { name: 'coordinator', command: coordinatorPlan(plan).command },
    { name: 'LMCache server', command: lmcachePlan(plan, pods[1], 1).command },
    { name: 'pod', command: vllmPlan(plan, pods[1], 1).command },
  ])('the $name listens on this machine only', ({ command }) => {
    expect(command[0]).toBe('/p/bin/python')
    expect(flagValue(command, '--host')).toBe('127.0.0.1')
    expect(command.join(' ')).not.toMatch(/0\.0\.0\.0|undefined|\*/)
  })

  test('a pod talks to its own LMCache server, and publishes its KV events on sockets of its own', () => {
    const command = vllmPlan(plan, pods[1], 1).command
    expect(flagValue(command, '--port')).toBe('8102')
    expect(flagValue(command, '--model')).toBe('models/small')
    expect(flagValue(command, '--kv-transfer-config')).toMatchObject({
      kv_connector: 'LMCacheMPConnector',
      kv_connector_extra_config: { 'lmcache.mp.host': 'tcp://127.0.0.1', 'lmcache.mp.port': 5552 },
    })
    expect(flagValue(command, '--kv-events-config')).toEqual({
      enable_kv_cache_events: true,
      publisher: 'zmq',
      endpoint: 'ipc:///tmp/ctx-vllm-1-aa/events-1',
    })
  })

  test('LMCache servers share the store and the coordinator, and have memory of their own', () => {
    const [first, second] = [lmcachePlan(plan, pods[0], 0).command, lmcachePlan(plan, pods[1], 1).command]
    for (const command of [first, second]) {
      expect(flagValue(command, '--l2-adapter')).toEqual({ type: 'fs', base_path: '/run/vllm/work/l2' })
      expect(flagValue(command, '--coordinator-url')).toBe('http://127.0.0.1:9200')
      expect(flagValue(command, '--chunk-size')).toBe(flagValue(coordinatorPlan(plan).command, '--chunk-size'))
    }
    expect(flagValue(first, '--shm-name')).toBe('lmc-ctx-vllm-1-aa-pod-0')
    expect(flagValue(second, '--shm-name')).toBe('lmc-ctx-vllm-1-aa-pod-1')
    expect(flagValue(second, '--http-port')).toBe('9102')
    expect(flagValue(second, '--port')).toBe('5552')
  })
})

describe('serverEnvironment', () => {
  test('keeps what a program needs, and drops what would change Python, vLLM or LMCache or lead to a proxy', () => {
    const env = serverEnvironment(plan, {
      PATH: '/bin',
      PYTHONPATH: '/mine',
      PYTHON: 'python3',
      VLLM_PORT: '1',
      VLLM_FLEET: '/f',
      LMCACHE_CHUNK_SIZE: '1',
      http_proxy: 'http://proxy',
      HTTPS_PROXY: 'http://proxy',
    })
    expect(env).toMatchObject({
      PATH: '/bin',
      PYTHONHASHSEED: '0',
      VLLM_HOST_IP: '127.0.0.1',
      VLLM_SERVER_DEV_MODE: '1',
    })
    expect(env['PYTHONPATH']).toMatch(/vllm\/runtime\/python-path$/)
    for (const name of ['PYTHON', 'VLLM_PORT', 'VLLM_FLEET', 'LMCACHE_CHUNK_SIZE', 'http_proxy', 'HTTPS_PROXY']) {
      expect(env).not.toHaveProperty(name)
    }
  })

  test('an own choice of instructions stays', () => {
    expect(serverEnvironment(plan, { ONEDNN_MAX_CPU_ISA: 'AVX2' })).toMatchObject({ ONEDNN_MAX_CPU_ISA: 'AVX2' })
  })
})
