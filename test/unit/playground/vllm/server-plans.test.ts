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
