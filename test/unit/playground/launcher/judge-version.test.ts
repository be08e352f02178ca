import { describe, expect, test } from '@jest/globals'
import { judgeEnvoyVersion } from '../../../../playground/launcher/find-envoy.ts'
import { judgeLlamaServerVersion } from '../../../../playground/launcher/find-llama-server.ts'
import { judgeRedisVersion } from '../../../../playground/launcher/find-redis.ts'

describe('judgeEnvoyVersion', () => {
  test.each([
    {
      name: 'the tested release',
      output: '\n/opt/envoy  version: 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567/1.40.0/Clean/RELEASE/BoringSSL\n',
      verdict: { ok: true, version: '1.40.0' },
    },
    {
      name: 'a newer one',
      output: 'envoy  version: deadbeef/1.41.2-dev/Clean/RELEASE/BoringSSL',
      verdict: { ok: true, version: '1.41.2' },
    },
    {
      name: 'an older one',
      output: 'envoy  version: deadbeef/1.39.4/Clean/RELEASE/BoringSSL',
      verdict: { ok: false, reason: 'it is 1.39.4, 1.40.0 is needed' },
    },
    {
      name: 'another program',
      output: 'true (GNU coreutils) 9.1',
      verdict: { ok: false, reason: 'it does not tell an Envoy version' },
    },
  ])('$name', ({ output, verdict }) => {
    expect(judgeEnvoyVersion(output)).toEqual(verdict)
  })
})

describe('judgeRedisVersion', () => {
  test.each([
    {
      name: 'a release in use',
      output: 'Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1f0b5f1bb1a0ae4e',
      verdict: { ok: true, version: '7.0.15' },
    },
    {
      name: 'one that is too old',
      output: 'Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=1',
      verdict: { ok: false, reason: 'it is 6.0.16, 7.0.0 is needed' },
    },
    { name: 'nothing', output: '\n', verdict: { ok: false, reason: 'it does not tell a Redis version' } },
  ])('$name', ({ output, verdict }) => {
    expect(judgeRedisVersion(output)).toEqual(verdict)
  })
})

describe('judgeLlamaServerVersion', () => {
  test.each([
    {
      name: "a distribution's build",
      output: '\nversion: 0.7.0 (build 11669, commit Debian)\nbuilt with GNU 16.2.0 for Linux x86_64\n',
      verdict: { ok: true, version: '0.7.0' },
    },
    {
      name: "upstream's build number",
      output: 'version: 5882 (0a1b2c3)\nbuilt with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu',
      verdict: { ok: true, version: '5882' },
    },
    { name: 'another program', output: 'curl 8.0.1', verdict: { ok: false, reason: 'it does not tell a version' } },
  ])('$name', ({ output, verdict }) => {
    expect(judgeLlamaServerVersion(output)).toEqual(verdict)
  })
})
