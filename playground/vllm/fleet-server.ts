import { createWriteStream } from 'node:fs'
import { type ChildExit, describeExit, type ManagedChild } from '../child-process.ts'
import type { Command, Environment, Report } from '../run-command.ts'
import { startServer } from '../start-server.ts'
import type { ReadyProbe } from '../wait-until-ready.ts'

/** One server of the fleet, which may be started anew on the same ports. */
export interface FleetServerOptions {
  /** `coordinator`, `lmcache-0`, `vllm-1`. */
  readonly name: string
  readonly url: string
  readonly command: Command
  readonly env: Environment
  readonly cwd: string
  /** Everything it prints is appended here. */
  readonly logFile: string
  readonly ready: ReadyProbe
  readonly readyTimeoutMs: number
  /** Receives a line when it is up, and when it ends without `stop` or `restart`. */
  readonly report: Report
}

/** A server that was started at least once. */
export interface FleetServer {
  readonly name: string
  /** The process that runs now, or the last one that did: to pause, resume or kill it. */
  child(): ManagedChild
  /**
   * Ends it if it still runs, and starts it anew with the same command line; resolves when it answers.
   * @throws NotReadyError, or the signal's reason
   */
  restart(signal?: AbortSignal): Promise<void>
  /** SIGTERM, after 10 seconds SIGKILL. It can be started again. */
  stop(): Promise<ChildExit>
}

const stopGraceMs = 10_000

/**
 * Starts a server and waits until it answers.
 * @throws NotReadyError, or the signal's reason
 */
export const startFleetServer = async (options: FleetServerOptions, signal?: AbortSignal): Promise<FleetServer> => {
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
    stop,
    child: () => current,
    restart: async (restartSignal) => {
      await stop()
      current = await start(restartSignal)
    },
  }
}
