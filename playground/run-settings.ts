import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Environment } from './run-command.ts'

/** What the environment changes of `run`. */
export interface RunSettings {
  /** `LISTEN_HOST`, default 127.0.0.1: the address on which Envoy accepts clients. */
  readonly host: string
  /** `GATEWAY_PORT`, default 8000. */
  readonly port: number
  /** `REDIS=1`: a Redis of its own for the sessions, kept from run to run. */
  readonly startsRedis: boolean
  /** Sessions may outlive the gateway: in that Redis, or in one that its own options or `CTX_CONFIG_FILE` may name. */
  readonly keepsSessions: boolean
  /** `MODEL`: a GGUF file for the embedded engines; undefined: random weights. */
  readonly modelPath: string | undefined
  /** `PODS`: engines that run already; undefined: two embedded ones are started. */
  readonly pods: readonly string[] | undefined
  /** `KV_DIR`: where engines save KV; undefined: in the state folder, by port, or one for all runs with a Redis. */
  readonly kvDirectory: string | undefined
}

/** `REDIS_URL` and `CONNECTOR` are the gateway's own and pass through to it. A string says what is wrong. */
export const readRunSettings = (env: Environment): RunSettings | string => {
  const portText = env['GATEWAY_PORT'] || '8000'
  const port = /^[1-9]\d{0,4}$/.test(portText) ? Number(portText) : Number.NaN
  if (!(port <= 65_535)) return `GATEWAY_PORT must be a port from 1 to 65535, not ${portText}.`
  const host = env['LISTEN_HOST'] || '127.0.0.1'
  if (!/^[\d.]+$|^[\da-f:]+$/i.test(host)) return `LISTEN_HOST must be an IP address, not ${host}.`
  const pods = env['PODS'] ? env['PODS'].split(',').map((pod) => pod.trim()) : undefined
  const wrong = pods?.find((pod) => !/^[\w.-]+:\d{1,5}$/.test(pod))
  if (wrong !== undefined) return `PODS must look like 10.0.0.1:8000,10.0.0.2:8000; this part does not: ${wrong}`
  const connector = env['CTX_KV_CONNECTOR'] || env['CONNECTOR'] || 'llamacpp-slots'
  if (pods !== undefined && connector === 'llamacpp-slots' && !env['KV_DIR']) {
    return 'With PODS, say where the engines save KV: KV_DIR=/shared/folder (their --slot-save-path), or CONNECTOR=lmcache with LMCACHE_URL=…, or CONNECTOR=none for no KV at all.'
  }
  if (!['', '0', '1'].includes(env['REDIS'] ?? '')) return `REDIS must be 1 or 0, not ${env['REDIS']}.`
  const modelPath = env['MODEL'] ? resolve(env['MODEL']) : undefined
  if (modelPath !== undefined && !existsSync(modelPath)) return `MODEL must be a GGUF file; there is no ${modelPath}.`
  const startsRedis = env['REDIS'] === '1'
  if (startsRedis && env['REDIS_URL']) return 'REDIS=1 starts a Redis, and REDIS_URL names one: set one of them.'
  const redisNames = ['REDIS_URL', 'CTX_SESSIONS_REDIS_URL', 'CTX_SESSIONS_REDIS_URL_FILE', 'CTX_CONFIG_FILE']
  return {
    host,
    port,
    startsRedis,
    keepsSessions: startsRedis || redisNames.some((name) => env[name]),
    pods,
    modelPath,
    kvDirectory: env['KV_DIR'] ? resolve(env['KV_DIR']) : undefined,
  }
}
