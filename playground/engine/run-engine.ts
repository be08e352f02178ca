// One engine process from start to end.
import type { Logger } from 'pino'
import { createEngineMetrics } from './engine-metrics.ts'
import { ensureRandomModel } from './gguf/ensure-random-model.ts'
import { defaultRandomModel } from './gguf/random-model.ts'
import { createEngineServer, type EngineServer } from './http/engine-server.ts'
import { createEngine } from './inference/engine.ts'
import type { EngineOptions } from './options.ts'
import type { InferenceRuntime } from './runtime/inference-runtime.ts'
import { createLlamaRuntime } from './runtime/llama-runtime.ts'
import { loadRuntime } from './runtime/load-runtime.ts'
import { noiseNotice, type ServedModels } from './served-models.ts'
import { openStateFolder, type StateFolder } from './slots/state-folder.ts'

/** The line on standard output that tells a supervisor that the engine can serve. */
export interface ReadyLine {
  readonly ready: true
  readonly name: string
  readonly pid: number
  readonly host: string
  readonly port: number
  readonly model: string
  readonly slots: number
  readonly contextTokens: number
  /** Whether the text is noise, because the model is the random one. */
  readonly noise: boolean
}

/** What the process gives the engine to work with. */
export interface EngineSurroundings {
  readonly log: Logger
  /** Called once, when the engine can serve. */
  readonly onReady: (line: ReadyLine) => void
}

/** A started engine. */
export interface RunningEngine {
  /** Ends it: requests under way may finish until `signal` is aborted, then they are cut. */
  stop(signal: AbortSignal): Promise<void>
}

const sweepIntervalMs = 60_000

/** Starts an engine: listens at once, answers 503 until the model is loaded. Throws when it cannot be loaded. */
export async function startEngine(
  options: EngineOptions,
  { log, onReady }: EngineSurroundings,
): Promise<RunningEngine> {
  const server = createEngineServer(log)
  const port = await server.listen(options)
  const folder = options.kvFolder === undefined ? undefined : await openStateFolder(options.kvFolder)
  const sweeping = folder === undefined ? undefined : await startSweeping(folder, log)
  const runtime = await loadModel(options, log)
  const models = servedModels(options, runtime)
  serve(server, { options, runtime, folder, models, log })
  onReady({
    ready: true,
    name: options.name,
    pid: process.pid,
    host: options.host,
    port,
    model: models.primaryName,
    slots: runtime.sequences.length,
    contextTokens: runtime.contextTokens,
    noise: runtime.isNoise,
  })
  return {
    async stop(signal) {
      clearInterval(sweeping)
      await server.close(signal)
      await runtime.dispose()
    },
  }
}

interface LoadedEngine {
  readonly options: EngineOptions
  readonly runtime: InferenceRuntime
  readonly folder: StateFolder | undefined
  readonly models: ServedModels
  readonly log: Logger
}

function serve(server: EngineServer, { options, runtime, folder, models, log }: LoadedEngine): void {
  const engine = createEngine(runtime, folder)
  const { maxBodyBytes, defaultMaxTokens, alwaysSendUsage } = options
  server.serve({
    engine,
    models,
    metrics: createEngineMetrics(engine, models.primaryName),
    log,
    limits: { maxBodyBytes, defaultMaxTokens, alwaysSendUsage },
  })
}

async function loadModel(options: EngineOptions, log: Logger): Promise<InferenceRuntime> {
  const loaded = await loadRuntime()
  if (loaded.kind === 'unusable') throw new Error(loaded.reason)
  const startedMs = performance.now()
  const modelPath = options.modelPath ?? (await randomModelPath(options.modelFolder, log))
  const runtime = await createLlamaRuntime(loaded.module, {
    modelPath,
    slots: options.slots,
    contextTokens: options.contextTokens,
    threads: options.threads,
    onLibraryMessage: (level, message) => log.warn({ library: 'llama.cpp', libraryLevel: level }, message.trim()),
  })
  const notice = runtime.isNoise ? `model loaded. ${noiseNotice}` : 'model loaded'
  log.info(
    { modelPath, contextTokens: runtime.contextTokens, loadMs: Math.round(performance.now() - startedMs) },
    notice,
  )
  return runtime
}

async function randomModelPath(folder: string, log: Logger): Promise<string> {
  const file = await ensureRandomModel(folder, defaultRandomModel)
  log.info({ path: file.path, bytes: file.bytes }, `random model ${file.outcome}. ${noiseNotice}`)
  return file.path
}

function servedModels(options: EngineOptions, runtime: InferenceRuntime): ServedModels {
  const [primaryName = 'model'] = options.modelNames
  return {
    primaryName,
    names: options.modelNames,
    description: runtime.isNoise ? noiseNotice : 'Served from a GGUF file by llama.cpp.',
    createdSeconds: Math.floor(Date.now() / 1000),
    contextTokens: runtime.contextTokens,
  }
}

async function startSweeping(folder: StateFolder, log: Logger): Promise<NodeJS.Timeout> {
  const sweep = async () => {
    try {
      const removed = await folder.sweep(Date.now())
      if (removed > 0) log.info({ removed }, 'unfinished slot files removed')
    } catch (error) {
      log.warn({ err: error }, 'the folder of slot files could not be swept')
    }
  }
  await sweep()
  return setInterval(() => void sweep(), sweepIntervalMs).unref()
}
