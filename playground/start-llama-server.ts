import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type ManagedChild, startChild } from './child-process.ts'
import { freePort } from './free-port.ts'
import type { ServerTool } from './install/find-tool.ts'
import { flags } from './run-command.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** A llama-server to run. Its KV files fit only servers with the same model and the same number of slots. */
export interface StartLlamaServerOptions {
  /** From `findLlamaServer`. */
  readonly tool: ServerTool
  /** A GGUF file. */
  readonly modelPath: string
  /** Where `/slots/{id}?action=save` writes; created when it is missing. Pods that exchange contexts share it. */
  readonly slotSavePath: string
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined
  /** The model name in answers. Default: the file's name. */
  readonly modelAlias?: string | undefined
  /** Requests that run at once, each in a slot of its own. Default: 2. */
  readonly slots?: number | undefined
  /** Tokens that one slot can hold. Default: 4096. */
  readonly contextTokensPerSlot?: number | undefined
  readonly extraArguments?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

/** A llama-server that has loaded its model. */
export interface RunningLlamaServer {
  /** `127.0.0.1:8080`. */
  readonly address: string
  readonly url: string
  readonly port: number
  readonly child: ManagedChild
}

const readyTimeoutMs = 60_000

/**
 * Starts llama-server and waits until its model is loaded. Its cache of prompts in memory is off, so that only the slots
 * and their files make a prompt fast. One thread: the threads spin, so more of them than idle processors are slower.
 * @throws NotReadyError, or the signal's reason
 */
export const startLlamaServer = async (options: StartLlamaServerOptions): Promise<RunningLlamaServer> => {
  const { slots = 2, contextTokensPerSlot = 4096, port = await freePort(), signal } = options
  const slotSavePath = resolve(options.slotSavePath)
  await mkdir(slotSavePath, { recursive: true })
  const child = await startChild({
    name: 'llama-server',
    command: [
      ...options.tool.command,
      ...flags({
        slots: true,
        metrics: true,
        host: '127.0.0.1',
        port,
        model: resolve(options.modelPath),
        alias: options.modelAlias,
        parallel: slots,
        'ctx-size': slots * contextTokensPerSlot,
        threads: 1,
        'batch-size': 512,
        'cache-ram': 0,
        'slot-save-path': slotSavePath,
      }),
      ...(options.extraArguments ?? []),
    ],
  })
  const url = `http://127.0.0.1:${port}`
  await readyOrKilled(child, { kind: 'http', url: `${url}/health` }, { timeoutMs: readyTimeoutMs, signal })
  return { address: `127.0.0.1:${port}`, url, port, child }
}

/**
 * Several servers with one model, which exchange KV through one folder. When one of them does not start, none stays.
 * @throws NotReadyError, or the signal's reason
 */
export const startLlamaPods = async (
  options: Omit<StartLlamaServerOptions, 'port'> & { readonly count: number },
): Promise<readonly RunningLlamaServer[]> => {
  const starts = await Promise.allSettled(Array.from({ length: options.count }, () => startLlamaServer(options)))
  const running = starts.flatMap((start) => (start.status === 'fulfilled' ? start.value : []))
  const failure = starts.find((start) => start.status === 'rejected')
  if (failure === undefined) return running
  await Promise.all(running.map((server) => server.child.kill()))
  throw failure.reason
}
