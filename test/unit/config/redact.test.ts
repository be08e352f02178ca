import { describe, expect, test } from '@jest/globals'
import { redactConfig } from '../../../src/config/redact.ts'
import { load } from './load.ts'

const redactedWith = (variables: Readonly<Record<string, string>>): unknown =>
  redactConfig(load({ PODS: 'a:1,b:1', KV_DIR: '/kv', CTX_TENANT_SECRET: 'hidden'.repeat(6), ...variables }))

describe('redactConfig', () => {
  test('redacts the secret and nothing else', () => {
    expect(redactedWith({})).toMatchObject({
      tenant: { secret: '[redacted]' },
      routing: { pods: ['a:1', 'b:1'] },
      kv: { directory: '/kv' },
      sessions: { store: 'memory', sliding: false },
    })
  })

  test('redacts the keys of engines', () => {
    const pool = { name: 'chat', pods: ['c:1'], apiKey: 'hidden', kv: { connector: 'none' } }
    expect(redactedWith({ CTX_ENGINES_API_KEY: 'hidden', CTX_POOLS: JSON.stringify([pool]) })).toMatchObject({
      engines: { apiKey: '[redacted]' },
      pools: [{ name: 'chat', apiKey: '[redacted]' }],
    })
  })

  test.each([
    { url: 'redis://host:6379/1', shown: 'redis://host:6379/1' },
    { url: 'redis://hidden@host', shown: 'redis://[redacted]@host' },
    { url: 'rediss://:hidden@host:6380', shown: 'rediss://[redacted]@host:6380' },
    { url: 'redis://hidden:hidden@host/2?password=hidden', shown: 'redis://[redacted]@host/2' },
  ])('$url is shown as $shown', ({ url, shown }) => {
    const redacted = redactedWith({ REDIS_URL: url })
    expect(redacted).toMatchObject({ sessions: { redisUrl: shown } })
    expect(JSON.stringify(redacted)).not.toContain('hidden')
  })

  test('several hosts are shown without their credentials', () => {
    expect(redactedWith({ REDIS_CLUSTER: 'rediss://hidden:hid,den@a:1,b' })).toMatchObject({
      sessions: { redisCluster: 'rediss://[redacted]@a:1,b' },
    })
    const sentinels = { REDIS_SENTINELS: 'redis://:hidden@a,b/2', REDIS_SENTINEL_MASTER: 'main' }
    expect(redactedWith({ ...sentinels, REDIS_SENTINEL_PASSWORD: 'hidden' })).toMatchObject({
      sessions: {
        redisSentinels: 'redis://[redacted]@a,b/2',
        redisSentinelMaster: 'main',
        redisSentinelPassword: '[redacted]',
      },
    })
  })
})
