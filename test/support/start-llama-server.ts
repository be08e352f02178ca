import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { freePort } from '../../playground/free-port.ts'
import { type FindToolOptions, findTool, type ServerTool } from '../../playground/install/find-tool.ts'
import { runInstaller } from '../../playground/install/install-once.ts'
import { ownEnvironment, packageRoot, toolsDir } from '../../playground/paths.ts'
import { flags } from '../../playground/run-command.ts'
import type { RunningEngine, StartEngineOptions } from '../../playground/start-engine.ts'
import { startServer } from '../../playground/start-server.ts'
import { answers } from '../../playground/wait-until-ready.ts'

/**
 * llama.cpp's llama-server: `LLAMA_SERVER_BIN`, else `llama-server` on `PATH`, else Debian sid's, unpacked together
 * with every library it needs down to sid's own C library and loader, so that it runs on an older Debian too (70 MB).
 */
const findLlamaServer = (options: FindToolOptions): Promise<ServerTool> => {
  const script = join(packageRoot(), 'test/support/install-llama-server.sh')
  return findTool(
    {
      name: 'llama-server',
      variable: 'LLAMA_SERVER_BIN',
      program: 'llama-server',
      remedy: 'Set LLAMA_SERVER_BIN to a llama-server, or use a Debian with apt-get and a network.',
      // `version: 0.7.0 (build 11669, …)`, upstream `version: 5882 (0a1b2c3)`
      versionPattern: /^version: (\S+)/m,
      directory: join(options.toolsDir, 'llama-server-sid'),
      install: (into) => runInstaller(['bash', script, into], options),
      installed: (directory) => join(directory, 'llama-server'),
    },
    options,
  )
}

/**
 * Finds or installs llama-server, starts it and waits until its model is loaded. Its cache of prompts in memory is off,
 * so that only the slots and their files make a prompt fast. One thread: the threads spin, so more of them than idle
 * processors are slower.
 * @throws InstallError, NotReadyError
 */
export const startLlamaServer = async (
  options: StartEngineOptions & { readonly modelPath: string },
): Promise<RunningEngine> => {
  const { port = await freePort(), slots = 4, contextTokensPerSlot = 8192 } = options
  const { modelPath, modelNames, kvDirectory, extraArguments = [] } = options
  const tool = await findLlamaServer({ env: ownEnvironment(), toolsDir: toolsDir() })
  await mkdir(kvDirectory, { recursive: true })
  const address = `127.0.0.1:${port}`
  const url = `http://${address}`
  const child = await startServer({
    ...options,
    command: [
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
      ...extraArguments,
    ],
    ready: answers(`${url}/health`),
  })
  return { address, url, child }
}
