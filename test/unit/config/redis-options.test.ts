import { describe, expect, test } from '@jest/globals'
import { essential, load, problemsOf, secret } from './load.ts'

const base = { ...essential, CTX_TENANT_SECRET: secret }
const master = { REDIS_SENTINEL_MASTER: 'mymaster' }

describe('a Redis Cluster and sentinels', () => {
  test.each([
    ['a database', { REDIS_CLUSTER: 'redis://host,other/1' }],
    ['an empty host', { REDIS_CLUSTER: 'redis://host,,other' }],
    ['a scheme for each host', { REDIS_CLUSTER: 'redis://host,redis://other' }],
    ['no scheme', { REDIS_SENTINELS: 'host:26379,other:26379', ...master }],
    ['# in the password', { REDIS_SENTINELS: 'redis://:hid#den@host,other', ...master }],
    ['a query', { REDIS_SENTINELS: 'redis://host,other?password=hidden', ...master }],
    ['a port above 65535', { REDIS_CLUSTER: 'redis://host:1,other:65536' }],
  ])('with %s are refused', (_name, variables) => {
    const problems = problemsOf({ ...base, ...variables })
    expect(problems).toMatch(
      /^REDIS_(CLUSTER|SENTINELS): .*: must be redis:\/\/ or rediss:\/\/user:password@host:port,host:port/,
    )
    expect(problems).not.toMatch(/hidden|hid#den/)
  })

  test.each([
    { REDIS_CLUSTER: 'redis://user:pa%2Css@host:7000,[::1]:7001,10.0.0.1' },
    { REDIS_CLUSTER: 'rediss://:p@ss@host/0' },
    { REDIS_SENTINELS: 'redis://:pass@host,other/2', ...master, REDIS_SENTINEL_PASSWORD: 'x' },
  ])('%j is accepted', (variables) => {
    const { sessions } = load({ ...base, ...variables })
    expect(sessions).toMatchObject({ store: 'redis' })
    expect(Object.values(sessions)).toEqual(expect.arrayContaining(Object.values(variables)))
  })
})

test.each<[string, Readonly<Record<string, string>>, string | RegExp]>([
  [
    'two kinds of Redis',
    { REDIS_URL: 'redis://:hidden@a', REDIS_CLUSTER: 'redis://b,c' },
    'REDIS_CLUSTER: sessions.redisCluster: sessions are in one Redis: give either sessions.redisUrl or sessions.redisCluster, not both',
  ],
  [
    'sentinels without a master',
    { REDIS_SENTINELS: 'redis://:hidden@a,b' },
    /^REDIS_SENTINELS: .*: sentinels watch several masters: name the one of the sessions in sessions\.redisSentinelMaster/,
  ],
  [
    'the name of a master without sentinels',
    { REDIS_URL: 'redis://a', ...master },
    /^REDIS_SENTINEL_MASTER: .*give sessions\.redisSentinels too$/,
  ],
  [
    'TLS files for a connection without TLS',
    { REDIS_CLUSTER: 'redis://a,b', CTX_SESSIONS_REDIS_TLS_CA: '/ca.crt' },
    /TLS is for rediss:\/\/ alone: begin sessions\.redisCluster with it$/,
  ],
  [
    'a certificate without its key',
    { REDIS_URL: 'rediss://a', CTX_SESSIONS_REDIS_TLS_CERTIFICATE: '/c.crt' },
    /give both certificate and key, or neither$/,
  ],
  [
    'a hash tag as prefix in a cluster',
    { REDIS_CLUSTER: 'redis://a,b', CTX_SESSIONS_KEY_PREFIX: '{ctx}:' },
    /^CTX_SESSIONS_KEY_PREFIX: .*must have no braces in a Redis Cluster/,
  ],
])('%s: the problem says what to do', (_name, variables, problem) => {
  const problems = problemsOf({ ...base, ...variables })
  if (typeof problem === 'string') expect(problems).toBe(problem)
  else expect(problems).toMatch(problem)
  expect(problems).not.toContain('hidden')
})
