import { join } from 'node:path'
import { z } from 'zod'
import { type ManagedChild, startChild } from './child-process.ts'
import { installLlamaRuntime } from './install/install-llama-runtime.ts'
import { ownEnvironment, packageRoot, toolsDir } from './paths.ts'
import { type Environment, flags, type Report } from './run-command.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** One pod of the embedded engine. */
export interface StartEngineOptions {
  /** For messages and its log. */
  readonly name: string
  /** Where slots are saved; pods that exchange contexts share it. */
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
  /** Default: this process's own. */
  readonly env?: Environment | undefined
  readonly onLine?: Report | undefined
  /** Default: 120,000; the first start writes the random model. */
  readonly readyTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface RunningEngine {
  /** `127.0.0.1:8080`. */
  readonly address: string
  readonly url: string
  readonly child: ManagedChild
}

const readyLine = z.object({ ready: z.literal(true), host: z.string(), port: z.number() })

/**
 * Installs llama.cpp on first use, starts an engine from the compiled files and waits until it can serve.
 * @throws InstallError, NotReadyError, or the signal's reason
 */
export const startEngine = async (options: StartEngineOptions): Promise<RunningEngine> => {
  const { env = ownEnvironment(), onLine, signal } = options
  const tools = toolsDir(env)
  const runtime = await installLlamaRuntime({ env, toolsDir: tools, signal, ...(onLine && { report: onLine }) })
  signal?.throwIfAborted()
  const child = await startChild({
    name: options.name,
    command: [
      process.execPath,
      join(packageRoot(), 'dist/playground/engine/main.js'),
      ...flags({
        runtime,
        'model-dir': join(tools, 'models'),
        name: options.name,
        'kv-dir': options.kvDirectory,
        port: options.port ?? 0,
        model: options.modelPath,
        'model-name': options.modelNames,
        slots: options.slots ?? 4,
        'context-tokens': options.contextTokensPerSlot ?? 8192,
      }),
      ...(options.extraArguments ?? []),
    ],
    onLine,
  })
  const isReady = /^\{"ready":true/
  await readyOrKilled(
    child,
    { kind: 'line', pattern: isReady },
    { timeoutMs: options.readyTimeoutMs ?? 120_000, signal },
  )
  const { host, port } = readyLine.parse(JSON.parse(child.output().find((line) => isReady.test(line)) ?? ''))
  return { address: `${host}:${port}`, url: `http://${host}:${port}`, child }
}
