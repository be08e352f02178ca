import { join } from 'node:path'
import { packageRoot } from '../paths.ts'
import { type FindToolOptions, findTool, type ServerTool } from './find-tool.ts'
import { runInstaller } from './install-once.ts'

/**
 * llama.cpp's llama-server: `LLAMA_SERVER_BIN`, else `llama-server` on `PATH`, else Debian sid's, unpacked together with
 * every library it needs down to sid's own C library and loader, so that it runs on an older Debian too (70 MB).
 */
export const findLlamaServer = (options: FindToolOptions): Promise<ServerTool> => {
  const script = join(packageRoot(), 'playground/install/install-llama-server.sh')
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
