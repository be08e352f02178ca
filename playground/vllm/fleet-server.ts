import { createWriteStream } from 'node:fs'
import { type ChildExit, type ManagedChild, startChild } from '../child-process.ts'
import type { Command, Environment, Report } from '../run-command.ts'
import { type ReadyProbe, readyOrKilled } from '../wait-until-ready.ts'

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
  /** Told when it is up, and when it ends without `stop` or `restart`. */
  readonly report: Report
}

/** A server that was started at least once. */
export interface FleetServer {
  readonly name: string
  readonly url: string
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
  /** Processes that end on purpose: nothing is reported of them. */
  const stoppedOnPurpose = new WeakSet<ManagedChild>()
  const start = async (startSignal: AbortSignal | undefined): Promise<ManagedChild> => {
    const child = await startProcess(options, startSignal)
    void child.exited.then(({ code, signal: killedBy }) => {
      if (stoppedOnPurpose.has(child)) return
      options.report(`${options.name} has ended (${killedBy ?? `status ${code}`}), see ${options.logFile}`)
    })
    return child
  }
  const stop = (child: ManagedChild): Promise<ChildExit> => {
    stoppedOnPurpose.add(child)
    return child.stop({ graceMs: stopGraceMs })
  }
  let current = await start(signal)
  return {
    name: options.name,
    url: options.url,
    child: () => current,
    async restart(restartSignal) {
      await stop(current)
      current = await start(restartSignal)
    },
    stop: () => stop(current),
  }
}

const startProcess = async (options: FleetServerOptions, signal: AbortSignal | undefined): Promise<ManagedChild> => {
  signal?.throwIfAborted()
  const startedMs = Date.now()
  const log = createWriteStream(options.logFile, { flags: 'a' })
  // The server goes on without its log, on a full disk for instance; its last lines are in memory.
  log.on('error', () => undefined)
  const child = await startChild({ ...options, onLine: (line) => void log.write(`${line}\n`) })
  void child.exited.then(() => log.end())
  await readyOrKilled(child, options.ready, { timeoutMs: options.readyTimeoutMs, signal })
  options.report(`${options.name} is up on ${options.url} (${Math.round((Date.now() - startedMs) / 1000)} s)`)
  return child
}
