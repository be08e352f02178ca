import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type ManagedChild, startChild } from './child-process.ts'
import { flag } from './flag.ts'
import { freePort, freePorts } from './free-port.ts'
import type { Command, ServerTool } from './server-tool.ts'
import { readyOrKilled } from './wait-until-ready.ts'

/** A llama-server to run. Its KV files fit only servers with the same model and the same number of slots. */
export interface StartLlamaServerOptions {
  /** From `findLlamaServer`. */
  readonly tool: ServerTool
  /** A GGUF file. */
  readonly modelPath: string
  /** Where `/slots/{id}?action=save` writes; made when it is missing. Pods that move contexts among them share it. */
  readonly slotSavePath: string
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined
  /** The model name in answers. Default: the file's name. */
  readonly modelAlias?: string | undefined
  /** Requests that run at once, each in a slot of its own. Default: 2. */
  readonly slots?: number | undefined
  /** Tokens that one slot can hold. Default: 4096. */
  readonly contextTokensPerSlot?: number | undefined
  /** Default: 1; the threads spin, so more of them than idle processors make it slower. */
  readonly threads?: number | undefined
  /** Tokens per prefill step; slot actions wait for the step that runs. Default: 512. */
  readonly batchTokens?: number | undefined
  /** Further command line arguments. */
  readonly extraArguments?: readonly string[] | undefined
  /** Default: 60,000. */
  readonly readyTimeoutMs?: number | undefined
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

const defaultReadyTimeoutMs = 60_000

/**
 * Starts llama-server and waits until its model is loaded. Its cache of prompts in memory is off, so that only the slots
 * and their files make a prompt fast.
 * @throws NotReadyError
 */
export async function startLlamaServer(options: StartLlamaServerOptions): Promise<RunningLlamaServer> {
  const port = options.port ?? (await freePort())
  const slotSavePath = resolve(options.slotSavePath)
  await mkdir(slotSavePath, { recursive: true })
  const child = await startChild({
    name: 'llama-server',
    command: llamaServerCommand({ ...options, port, slotSavePath }),
  })
  const url = `http://127.0.0.1:${port}`
  const timeoutMs = options.readyTimeoutMs ?? defaultReadyTimeoutMs
  await readyOrKilled(child, { kind: 'http', url: `${url}/health` }, { timeoutMs, signal: options.signal })
  return { address: `127.0.0.1:${port}`, url, port, child }
}

/**
 * Several servers with one model, which exchange KV through one folder. When one of them does not start, none stays.
 * @throws NotReadyError
 */
export async function startLlamaPods(
  options: Omit<StartLlamaServerOptions, 'port'> & { readonly count: number },
): Promise<readonly RunningLlamaServer[]> {
  const ports = await freePorts(options.count)
  const starts = await Promise.allSettled(ports.map((port) => startLlamaServer({ ...options, port })))
  const running = starts.flatMap((start) => (start.status === 'fulfilled' ? start.value : []))
  const failure = starts.find((start) => start.status === 'rejected')
  if (failure === undefined) return running
  await Promise.all(running.map((server) => server.child.kill()))
  throw failure.reason
}

/** The whole command line. */
export function llamaServerCommand(options: StartLlamaServerOptions & { readonly port: number }): Command {
  const slots = options.slots ?? 2
  return [
    ...options.tool.command,
    '--slots',
    '--metrics',
    ...flag('--host', '127.0.0.1'),
    ...flag('--port', options.port),
    ...flag('--model', resolve(options.modelPath)),
    ...flag('--alias', options.modelAlias),
    ...flag('--parallel', slots),
    ...flag('--ctx-size', slots * (options.contextTokensPerSlot ?? 4096)),
    ...flag('--threads', options.threads ?? 1),
    ...flag('--batch-size', options.batchTokens ?? 512),
    ...flag('--slot-save-path', options.slotSavePath),
    ...flag('--cache-ram', 0),
    ...(options.extraArguments ?? []),
  ]
}
