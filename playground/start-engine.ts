import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import { findLlamaServer } from './install/find-llama-server.ts'
import { installLlamaRuntime } from './install/install-llama-runtime.ts'
import { ownEnvironment, packageRoot, toolsDir } from './paths.ts'
import { type Command, flags } from './run-command.ts'
import { type Launch, startServer } from './start-server.ts'
import { answers } from './wait-until-ready.ts'

/** One pod. Its KV files fit only engines with the same model and the same number of slots. */
export interface StartEngineOptions extends Launch {
  /** For messages. */
  readonly name: string
  /** Where slots are saved; made when it is missing. Pods that exchange contexts share it. */
  readonly kvDirectory: string
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined
  /** A GGUF file. Default: the small model with random weights. */
  readonly modelPath?: string | undefined
  /** The model's names in requests; the first one is also that in answers. Default: the engine's own choice. */
  readonly modelNames?: readonly string[] | undefined
  /** Requests that run at once, each in a slot of its own. Default: 4. */
  readonly slots?: number | undefined
  /** Tokens that one slot can hold. Default: 8192. */
  readonly contextTokensPerSlot?: number | undefined
  readonly extraArguments?: readonly string[] | undefined
}

/** An engine that has loaded its model. */
export interface RunningEngine {
  /** `127.0.0.1:8080`. */
  readonly address: string
  readonly url: string
  readonly child: ManagedChild
}

/**
 * Installs llama.cpp on first use, starts an embedded engine from the compiled files and waits until it can serve. The first
 * start writes the random model.
 * @throws InstallError, NotReadyError, or the signal's reason
 */
export const startEngine = async (options: StartEngineOptions): Promise<RunningEngine> => {
  const { env = ownEnvironment(), port = await freePort(), onLine, signal } = options
  const tools = toolsDir(env)
  const runtime = await installLlamaRuntime({ env, toolsDir: tools, signal, report: onLine })
  return startOn(options, port, [
    process.execPath,
    join(packageRoot(), 'dist/playground/engine/main.js'),
    ...flags({
      runtime,
      'model-dir': join(tools, 'models'),
      name: options.name,
      'kv-dir': options.kvDirectory,
      port,
      model: options.modelPath,
      'model-name': options.modelNames,
      slots: options.slots ?? 4,
      'context-tokens': options.contextTokensPerSlot ?? 8192,
    }),
  ])
}

/**
 * Finds or installs llama-server, starts it and waits until its model is loaded. Its cache of
 * prompts in memory is off, so that only the slots and their files make a prompt fast. One thread: the threads spin, so more
 * of them than idle processors are slower.
 * @throws InstallError, NotReadyError, or the signal's reason
 */
export const startLlamaServer = async (
  options: StartEngineOptions & { readonly modelPath: string },
): Promise<RunningEngine> => {
  const { env = ownEnvironment(), port = await freePort(), onLine: report, signal } = options
  const { slots = 4, contextTokensPerSlot = 8192, modelPath, modelNames, kvDirectory } = options
  const tool = await findLlamaServer({ env, toolsDir: toolsDir(env), report, signal })
  await mkdir(kvDirectory, { recursive: true })
  return startOn(options, port, [
    ...tool.command,
    ...flags({
      slots: true,
      metrics: true,
      host: '127.0.0.1',
      port,
      model: resolve(modelPath),
      alias: modelNames?.[0],
      parallel: slots,
      'ctx-size': slots * contextTokensPerSlot,
      threads: 1,
      'batch-size': 512,
      'cache-ram': 0,
      'slot-save-path': resolve(kvDirectory),
    }),
  ])
}

const startOn = async (options: StartEngineOptions, port: number, command: Command): Promise<RunningEngine> => {
  const address = `127.0.0.1:${port}`
  const url = `http://${address}`
  const child = await startServer({
    ...options,
    command: [...command, ...(options.extraArguments ?? [])],
    ready: answers(`${url}/health`),
  })
  return { address, url, child }
}
