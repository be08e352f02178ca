import { expect, test } from '@jest/globals'
import { readRunSettings } from '../../../playground/run-settings.ts'

test.each([
  ['nothing', {}, { host: '127.0.0.1', port: 8000, pods: undefined }],
  ['LISTEN_HOST', { LISTEN_HOST: '0.0.0.0' }, { host: '0.0.0.0' }],
  ['REDIS', { REDIS: '1' }, { startsRedis: true, keepsSessions: true }],
  ['no Redis', { REDIS_URL: '', CTX_LOG_LEVEL: 'info' }, { keepsSessions: false }],
  ['a Redis in a file', { CTX_SESSIONS_REDIS_URL_FILE: 'url' }, { startsRedis: false, keepsSessions: true }],
  ['a configuration file', { CTX_CONFIG_FILE: 'config.yaml' }, { keepsSessions: true }],
  ['CTX_KV_CONNECTOR', { PODS: 'a:1', CTX_KV_CONNECTOR: 'none' }, { pods: ['a:1'], kvDirectory: undefined }],
  ['PODS and KV_DIR', { PODS: 'a:1, b:2', KV_DIR: '/kv' }, { pods: ['a:1', 'b:2'], kvDirectory: '/kv' }],
])('run with %s in the environment', (_name, env, expected) => {
  expect(readRunSettings(env)).toMatchObject(expected)
})

test.each([
  ['a port out of range', { GATEWAY_PORT: '65536' }, 'GATEWAY_PORT'],
  ['a host that is no address', { LISTEN_HOST: 'a b' }, 'LISTEN_HOST'],
  ['a pod without a port', { PODS: 'a:1,b', KV_DIR: '/kv' }, 'this part does not: b'],
  ['a switch that is neither on nor off', { REDIS: 'yes' }, 'REDIS must be 1 or 0, not yes.'],
  ['a model that is not there', { MODEL: '/none.gguf' }, 'there is no /none.gguf'],
  ['two Redis', { REDIS: '1', REDIS_URL: 'redis://a' }, 'set one of them'],
  ['pods without a folder for KV', { PODS: 'a:1' }, 'KV_DIR'],
])('run is refused with %s', (_name, env, message) => {
  expect(readRunSettings(env)).toContain(message)
})
