import { resolve } from 'node:path'
import type { Environment } from './server-tool.ts'

/** What the environment changes of `run`. */
export interface RunSettings {
  /** `GATEWAY_PORT`, default 8000. */
  readonly port: number
  /** `MODEL`: a GGUF file for the embedded engines; undefined: random weights. */
  readonly modelPath: string | undefined
  /** `PODS`: engines that run already; undefined: two embedded ones are started. */
  readonly pods: readonly string[] | undefined
  /** `KV_DIR`: the folder that the engines save KV into; undefined: one of the project's own. */
  readonly kvDirectory: string | undefined
}

export type RunSettingsOutcome =
  | { readonly kind: 'valid'; readonly settings: RunSettings }
  | { readonly kind: 'invalid'; readonly message: string }

const defaultPort = 8000

/** `REDIS_URL` and `CONNECTOR` are the gateway's own and pass through to it. */
export const readRunSettings = (env: Environment): RunSettingsOutcome => {
  const portText = env['GATEWAY_PORT'] || String(defaultPort)
  const port = /^[1-9]\d{0,4}$/.test(portText) ? Number(portText) : Number.NaN
  if (!(port <= 65_535)) return invalid(`GATEWAY_PORT must be a port from 1 to 65535, not ${portText}.`)
  const pods = env['PODS'] ? env['PODS'].split(',').map((pod) => pod.trim()) : undefined
  const wrong = pods?.find((pod) => !/^[\w.-]+:\d{1,5}$/.test(pod))
  if (wrong !== undefined)
    return invalid(`PODS must look like 10.0.0.1:8000,10.0.0.2:8000; this part does not: ${wrong}`)
  const connector = env['CONNECTOR'] || 'llamacpp-slots'
  if (pods !== undefined && connector === 'llamacpp-slots' && !env['KV_DIR']) {
    return invalid(
      'With PODS, say where the engines save KV: KV_DIR=/shared/folder (their --slot-save-path), or CONNECTOR=lmcache with LMCACHE_URL=…, or CONNECTOR=none for no KV at all.',
    )
  }
  return {
    kind: 'valid',
    settings: {
      port,
      pods,
      modelPath: env['MODEL'] ? resolve(env['MODEL']) : undefined,
      kvDirectory: env['KV_DIR'] ? resolve(env['KV_DIR']) : undefined,
    },
  }
}

const invalid = (message: string): RunSettingsOutcome => ({ kind: 'invalid', message })
