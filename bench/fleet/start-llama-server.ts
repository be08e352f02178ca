import { mkdir } from 'node:fs/promises'
import type { Children, ManagedChild } from '../../playground/child-process.ts'
import { flags } from '../../playground/run-command.ts'
import { startServer } from '../../playground/start-server.ts'
import { answers } from '../../playground/wait-until-ready.ts'

interface LlamaServerOptions {
  readonly name: string
  readonly port: number
  readonly children: Children
  readonly modelPath: string
  readonly modelName: string
  readonly slots: number
  readonly contextTokensPerSlot: number
  readonly threads: number
  readonly kvDirectory: string
  /** Whether a gateway keeps its KV; else it does so itself, in its cache in memory. */
  readonly ofGateway: boolean
  readonly moreArguments: readonly string[]
}

/**
 * Starts the llama-server that the environment variable `LLAMA_SERVER` names.
 * @throws Error when it names none; NotReadyError
 */
export const startLlamaServer = async (options: LlamaServerOptions): Promise<ManagedChild> => {
  const program = process.env['LLAMA_SERVER']
  if (!program) throw new Error('--engine llama-server wants LLAMA_SERVER, the path of a llama-server')
  const { name, port, children, slots } = options
  await mkdir(options.kvDirectory, { recursive: true })
  return startServer({
    name,
    children,
    command: [
      program,
      ...flags({
        host: '127.0.0.1',
        port,
        model: options.modelPath,
        alias: options.modelName,
        parallel: slots,
        'ctx-size': slots * options.contextTokensPerSlot,
        threads: options.threads,
        metrics: true,
        ...(options.ofGateway ? { slots: true, 'slot-save-path': options.kvDirectory, 'cache-ram': 0 } : {}),
      }),
      ...options.moreArguments,
    ],
    ready: answers(`http://127.0.0.1:${port}/health`),
  })
}
