import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'
import { type ChildExit, describeExit, type ManagedChild } from '../child-process.ts'
import type { Command, Environment, Report } from '../run-command.ts'
import { startServer } from '../start-server.ts'
import type { ReadyProbe } from '../wait-until-ready.ts'

/** One kind of server, on its ports. */
export interface ServerPlan {
  /** `coordinator`, `lmcache-0`, `vllm-1`. */
  readonly name: string
  readonly url: string
  readonly command: Command
  readonly ready: ReadyProbe
  /** Default: two minutes. */
  readonly readyTimeoutMs?: number
}

export interface FleetServerOptions extends ServerPlan {
  readonly env: Environment
  readonly cwd: string
  /** Everything it prints is appended here. */
  readonly logFile: string
  /** Receives a line when it is up, and when it ends without `stop` or `restart`. */
  readonly report: Report
}

const stopGraceMs = 10_000

/**
 * Starts a server and waits until it answers.
 * @throws NotReadyError, or the signal's reason
 */
export const startFleetServer = async (options: FleetServerOptions, signal?: AbortSignal) => {
  const { name, url, logFile, report } = options
  /** Nothing is reported of the end of these. */
  const stoppedOnPurpose = new WeakSet<ManagedChild>()
  const start = async (startSignal: AbortSignal | undefined): Promise<ManagedChild> => {
    const startedMs = Date.now()
    const log = createWriteStream(logFile, { flags: 'a' })
    // The server goes on without its log, on a full disk for instance; its last lines are in memory.
    log.on('error', () => undefined)
    const onLine = (line: string): void => void log.write(`${line}\n`)
    const child = await startServer({ ...options, onLine, signal: startSignal }).catch((error: unknown) => {
      log.end()
      throw error
    })
    void child.exited.then(() => log.end())
    report(`${name} is up on ${url} (${Math.round((Date.now() - startedMs) / 1000)} s)`)
    void child.exited.then((exit) => {
      if (!stoppedOnPurpose.has(child)) report(`${name} ${describeExit(exit)}, see ${logFile}`)
    })
    return child
  }
  let current = await start(signal)
  const stop = (): Promise<ChildExit> => {
    stoppedOnPurpose.add(current)
    return current.stop({ graceMs: stopGraceMs })
  }
  return {
    name,
    /** SIGTERM, after 10 seconds SIGKILL. It can be started again. */
    stop,
    /** The process that runs now, or the last one that did: to pause, resume or kill it. */
    child: (): ManagedChild => current,
    /**
     * Ends it if it still runs, and starts it anew with the same command line; resolves when it answers.
     * @throws NotReadyError, or the signal's reason
     */
    restart: async (restartSignal?: AbortSignal): Promise<void> => {
      await stop()
      current = await start(restartSignal)
    },
  }
}

export type FleetServer = Awaited<ReturnType<typeof startFleetServer>>

/**
 * Accepts commands for single servers from other processes of the same user: HTTP on a Unix socket, in a folder that
 * only its user may enter. `POST /<server>/<pause|resume|kill|restart>` is answered 204 when it is done; a restart is
 * done when the server answers. Resolves to what ends it.
 */
export const serveFleetControl = async (
  socketPath: string,
  servers: readonly FleetServer[],
): Promise<() => Promise<void>> => {
  const ending = new AbortController()
  const commands = new Map<string, (server: FleetServer) => unknown>([
    ['pause', (server) => server.child().pause()],
    ['resume', (server) => server.child().resume()],
    ['kill', (server) => server.child().kill()],
    ['restart', (server) => server.restart(ending.signal)],
  ])
  const control = createServer(async (request, response) => {
    const [, name, word = ''] = (request.url ?? '').split('/')
    const server = servers.find((candidate) => candidate.name === name)
    const command = commands.get(word)
    if (request.method !== 'POST' || server === undefined || command === undefined) {
      response.writeHead(404).end()
      return
    }
    try {
      await command(server)
      response.writeHead(204).end()
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await once(control.listen(socketPath), 'listening')
  return async () => {
    ending.abort()
    const closed = once(control, 'close')
    control.close()
    control.closeAllConnections()
    await closed
  }
}
