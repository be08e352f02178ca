import { describe, expect, test } from '@jest/globals'
import { essential, load, problemsOf, secret } from './load.ts'

describe('the Redis URL', () => {
  const refusal = /^REDIS_URL: sessions\.redisUrl: must be redis:\/\/ /

  test.each([
    ['another protocol', 'http://host'],
    ['no host', 'redis:///0'],
    ['a port that is not a number', 'redis://host:notaport'],
    ['a port above 65535', 'redis://host:65536'],
    ['# in the password', 'redis://:pa#ss@host'],
    ['# in the user', 'redis://us#er@host'],
    ['/ in the password', 'redis://:pa/ss@host'],
    ['? in the password', 'redis://:pa?ss@host'],
    ['a blank in the host', 'redis://ho st'],
    ['% without digits in the password', 'redis://:pa%ss@host'],
  ])('with %s is refused', (_name, url) => {
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

  test.each(['CTX', 'CTX_GATEWAY', 'CTX_LISTEN_ADMIN'])('%s_… are ignored', (prefix) => {
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
    expect(problemsOf(environment)).toMatch(/^CTX_GATEWAY_PORTS: no .*\nCTX_OTHER_PORT: no .*$/)
  })
})
