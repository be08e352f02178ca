import { describe, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { type Ended, runCommandLine } from '../../support/run-command-line.ts'
import { createScriptedPod } from '../support/scripted-pod.ts'
import { embeddedPods, type Stack } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const examine = (
  stack: Stack,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> => {
  const { adminUrl } = stack.gateway()
  const places = ['--admin', adminUrl, '--envoy', `http://${stack.envoy.adminAddress}`, '--url', stack.url]
  return runCommandLine(['doctor', ...places, ...args], { env })
}

const findingsOf = ({ stdout }: Ended): readonly unknown[] => JSON.parse(stdout).findings

describe('doctor and an installation', () => {
  const stack = useStack({ pods: embeddedPods({ count: 1 }) })

  test('finds nothing where everything is as in the repository', async () => {
    const { code, stdout, stderr } = await examine(stack)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/\n0 errors, 0 warnings, \d\d checks passed\n$/)
    expect(stdout).toContain('not checked: redis-eviction, redis-coverage\n  why: sessions are in memory\n')
    expect(stdout.match(/not checked: .*/g)).toHaveLength(1)
  })

  test('says what does not answer, and what was not checked for it', async () => {
    const { code, stdout } = await runCommandLine([
      'doctor',
      '--envoy',
      'http://127.0.0.1:1',
      '--admin',
      stack.gateway().adminUrl,
    ])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error {4}reachable: http:\/\/127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/)
    expect(stdout).toMatch(
      /not checked: envoy-version, ext-proc, graceful-close, .*\n {2}why: http:\/\/127\.0\.0\.1:1 does not/,
    )
  })

  test.each([
    [['--envoy', '127.0.0.1:9901'], '--envoy 127.0.0.1:9901: must be http://host:port'],
    [['--enovy', 'x'], 'There is no option --enovy. Did you mean --envoy?'],
  ])('%s is wrong usage', async (args, message) => {
    const { code, stderr } = await runCommandLine(['doctor', ...args])
    expect({ code, stderr }).toEqual({ code: 2, stderr: `${message}\nTry: context-cache-gateway help doctor\n` })
  })
})

describe('doctor, a Redis that evicts, and an Envoy that lets too much and too little through', () => {
  const stranger = createScriptedPod()
  const pod = createScriptedPod()
  const stack = useStack({
    store: 'redis',
    env: { CONNECTOR: 'none' },
    pods: async () => {
      await Promise.all([pod.start(), stranger.start()])
      return [pod, stranger]
    },
    envoyConfig: (text) =>
      text
        .replaceAll(`port_value: ${stranger.address.split(':')[1]}`, 'port_value: 1')
        .replaceAll('16777216', '1048576')
        .replace(
          /match: \{ prefix: "\/" \}\s+direct_response: \{ status: 404 \}/,
          'match: { prefix: "/" }\n                          route: *to_pods',
        ),
  })

  test('sees what clients reach, which bodies are refused, what Redis evicts, and the pod that Envoy does not know', async () => {
    pod.otherwise((_request, reply) => reply.json(200, []))
    const url = stack.redis?.url ?? ''
    const redis = new Redis(url, { protocol: 2 })
    await redis.config('SET', 'maxmemory', '100mb')
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
    redis.disconnect()
    const env = { REDIS_URL: url, PODS: pod.address, CONNECTOR: 'none', CTX_TENANT_SECRET: 'x'.repeat(32) }

    const ended = await examine(stack, ['--json'], env)
    expect(ended.code).toBe(1)
    expect(findingsOf(ended)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ check: 'large-bodies', severity: 'error' }),
        expect.objectContaining({ check: 'control-paths', problem: expect.stringContaining('/slots (200)') }),
        expect.objectContaining({
          check: 'redis-eviction',
          severity: 'error',
          problem: 'maxmemory-policy of Redis is allkeys-lru, maxmemory 104857600.',
        }),
        expect.objectContaining({ check: 'pods-in-envoy', problem: expect.stringContaining(stranger.address) }),
      ]),
    )
  })
})
