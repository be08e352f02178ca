import { join } from 'node:path'
import { z } from 'zod'
import { type ManagedChild, startChild } from './child-process.ts'
import { flag } from './flag.ts'
import { packageRoot } from './tools-dir.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** One pod of the embedded engine. */
export interface StartEngineOptions {
  /** For messages and its log. */
  readonly name: string
  /** Where slots are saved; pods that move contexts among them share it. */
  readonly kvDirectory: string
  /** Default: a free one. */
  readonly port?: number | undefined
  /** A GGUF file. Default: the small model with random weights. */
  readonly modelPath?: string | undefined
  readonly modelNames?: readonly string[] | undefined
  /** Default: 4. */
  readonly slots?: number | undefined
  /** Default: 8192. */
  readonly contextTokensPerSlot?: number | undefined
  readonly extraArguments?: readonly string[] | undefined
  readonly onLine?: ((line: string) => void) | undefined
  /** Default: 120,000; the first start writes the random model. */
  readonly readyTimeoutMs?: number | undefined
}

export interface RunningEngine {
  /** `127.0.0.1:8080`. */
  readonly address: string
  readonly url: string
  readonly child: ManagedChild
}

const readyLine = z.object({ ready: z.literal(true), host: z.string(), port: z.number() })
const defaultReadyTimeoutMs = 120_000

/**
 * Starts an engine from the compiled files and waits until it can serve.
 * @throws NotReadyError
 */
export async function startEngine(options: StartEngineOptions): Promise<RunningEngine> {
  const child = await startChild({
    name: options.name,
    command: [
      process.execPath,
      join(packageRoot(), 'dist/playground/engine/main.js'),
      ...flag('--name', options.name),
      ...flag('--kv-dir', options.kvDirectory),
      ...flag('--port', options.port ?? 0),
      ...flag('--model', options.modelPath),
      ...(options.modelNames ?? []).flatMap((name) => ['--model-name', name]),
      ...flag('--slots', options.slots),
      ...flag('--context-tokens', options.contextTokensPerSlot),
      ...(options.extraArguments ?? []),
    ],
    onLine: options.onLine,
  })
  await readyOrKilled(
    child,
    { kind: 'line', pattern: /^\{"ready":true/ },
    { timeoutMs: options.readyTimeoutMs ?? defaultReadyTimeoutMs },
  )
  const line = child.output().find((text) => text.startsWith('{"ready":true')) ?? ''
  const { host, port } = readyLine.parse(JSON.parse(line))
  return { address: `${host}:${port}`, url: `http://${host}:${port}`, child }
}
