import { join } from 'node:path'
import type { ManagedChild } from './child-process.ts'
import type { VocabularyKind } from './engine/vocabulary.ts'
import { freePort } from './free-port.ts'
import { installLlamaRuntime } from './install/install-llama-runtime.ts'
import { ownEnvironment, packageRoot, toolsDir } from './paths.ts'
import { flags } from './run-command.ts'
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
  /** A GGUF file. Default: a small model with random weights. */
  readonly modelPath?: string | undefined
  /** Tokens of the model with random weights. Default: bytes. */
  readonly vocabulary?: VocabularyKind | undefined
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
 * Installs llama.cpp on first use, starts an embedded engine from the compiled files and waits until it can serve. The
 * first start writes the random model.
 * @throws InstallError, NotReadyError, or the signal's reason
 */
export const startEngine = async (options: StartEngineOptions): Promise<RunningEngine> => {
  const { env = ownEnvironment(), port = await freePort(), onLine, signal } = options
  const tools = toolsDir(env)
  const runtime = await installLlamaRuntime({ env, toolsDir: tools, signal, report: onLine })
  const address = `127.0.0.1:${port}`
  const url = `http://${address}`
  const child = await startServer({
    ...options,
    command: [
      process.execPath,
      join(packageRoot(), 'dist/playground/engine/main.js'),
      ...flags({
        runtime,
        'model-dir': join(tools, 'models'),
        name: options.name,
        'kv-dir': options.kvDirectory,
        port,
        model: options.modelPath,
        vocabulary: options.vocabulary,
        'model-name': options.modelNames,
        slots: options.slots ?? 4,
        'context-tokens': options.contextTokensPerSlot ?? 8192,
      }),
      ...(options.extraArguments ?? []),
    ],
    ready: answers(`${url}/health`),
  })
  return { address, url, child }
}
