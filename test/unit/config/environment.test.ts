import { describe, expect, test } from '@jest/globals'
import type { Config } from '../../../src/config/config.ts'
import { loadConfig } from '../../../src/config/load-config.ts'

/** Required by every gateway. */
const essential = { PODS: '10.0.0.1:8000', KV_DIR: '/mnt/kv' }

const secret = 'a-secret-of-32-characters-or-more'

const load = (environment: Readonly<Record<string, string>>): Config => {
  const outcome = loadConfig({ environment })
  if (outcome.kind === 'loaded') return outcome.config
  throw new Error(outcome.problems)
}

const problemsOf = (environment: Readonly<Record<string, string>>): string => {
  const outcome = loadConfig({ environment })
  return outcome.kind === 'invalid' ? outcome.problems : 'none'
}

describe('the Redis URL', () => {
  const refusal = /must be redis:\/\/ .*\(set by REDIS_URL\)\n.*at sessions\.redisUrl/

  test.each([
    { name: 'another protocol', url: 'http://host' },
    { name: 'no host', url: 'redis:///0' },
    { name: 'a port that is not a number', url: 'redis://host:notaport' },
    { name: 'a port above 65535', url: 'redis://host:65536' },
    { name: '# in the password', url: 'redis://:pa#ss@host' },
    { name: '# in the user', url: 'redis://us#er@host' },
    { name: '/ in the password', url: 'redis://:pa/ss@host' },
    { name: '? in the password', url: 'redis://:pa?ss@host' },
    { name: 'a blank in the host', url: 'redis://ho st' },
    { name: '% without digits in the password', url: 'redis://:pa%ss@host' },
  ])('with $name is refused', ({ url }) => {
    expect(problemsOf({ ...essential, REDIS_URL: url, CTX_TENANT_SECRET: secret })).toMatch(refusal)
  })

  test.each(['redis://host', 'rediss://user:pa%23ss@host:6380/1', 'redis://:p@ss@host', 'redis://[::1]:6379/2'])(
    '%s is accepted',
    (url) => {
      expect(load({ ...essential, REDIS_URL: url, CTX_TENANT_SECRET: secret }).sessions).toMatchObject({
        store: 'redis',
        redisUrl: url,
      })
    },
  )
})

describe('variables that Kubernetes sets for a Service', () => {
  /** As the kubelet sets them for a Service with a named port. */
  const serviceVariables = (prefix: string): Readonly<Record<string, string>> => ({
    [`${prefix}_SERVICE_HOST`]: '10.96.0.7',
    [`${prefix}_SERVICE_PORT`]: '50051',
    [`${prefix}_SERVICE_PORT_GRPC`]: '50051',
    [`${prefix}_PORT`]: 'tcp://10.96.0.7:50051',
    [`${prefix}_PORT_50051_TCP`]: 'tcp://10.96.0.7:50051',
    [`${prefix}_PORT_50051_TCP_PROTO`]: 'tcp',
    [`${prefix}_PORT_50051_TCP_PORT`]: '50051',
    [`${prefix}_PORT_50051_TCP_ADDR`]: '10.96.0.7',
  })

  test.each(['CTX_GATEWAY', 'CTX_LISTEN_ADMIN'])('%s_… are ignored', (prefix) => {
    expect(load({ ...essential, ...serviceVariables(prefix) })).toMatchObject({ listen: { admin: { port: 9090 } } })
  })

  test('an option with the name of a Service keeps its value', () => {
    const environment = { ...essential, ...serviceVariables('CTX_LISTEN_ADMIN'), CTX_LISTEN_ADMIN_PORT: '9191' }
    expect(load(environment).listen.admin.port).toBe(9191)
  })

  test('other unknown names beside them are refused', () => {
    const environment = {
      ...essential,
      ...serviceVariables('CTX_GATEWAY'),
      CTX_GATEWAY_PORTS: '1',
      CTX_OTHER_PORT: '1',
    }
    expect(problemsOf(environment)).toMatch(/CTX_GATEWAY_PORTS\n.*CTX_OTHER_PORT$/)
  })
})
