import { startChild } from '../launcher/child-process.ts'
import { InstallError } from '../launcher/install-once.ts'
import type { Command, Environment, Report } from '../launcher/server-tool.ts'

/** A step of an installation that takes long enough for its user to want to see it go on. */
export interface RunReportedOptions {
  /** For messages, such as `uv pip install`. */
  readonly name: string
  readonly command: Command
  readonly env: Environment
  /** Given the elapsed time now and then. */
  readonly report: Report
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

const reportEveryMs = 15_000
const shownLines = 15

/**
 * Runs a program to its end and tells now and then that it still runs.
 * @throws InstallError with its last lines when it fails or takes too long, or the signal's reason
 */
export const runReported = async (options: RunReportedOptions): Promise<void> => {
  options.signal?.throwIfAborted()
  const startedMs = Date.now()
  const child = await startChild({ name: options.name, command: options.command, env: options.env })
  const kill = (): void => void child.kill()
  const timer = setInterval(() => {
    options.report(`${options.name} … ${Math.round((Date.now() - startedMs) / 1000)} s`)
  }, reportEveryMs)
  const limit = setTimeout(kill, options.timeoutMs)
  options.signal?.addEventListener('abort', kill, { once: true })
  try {
    const exit = await child.exited
    options.signal?.throwIfAborted()
    if (exit.code === 0) return
    const how = exit.signal === undefined ? `status ${exit.code}` : exit.signal
    throw new InstallError(
      `${options.name} ended with ${how} after ${Math.round((Date.now() - startedMs) / 1000)} s:\n${child.output().slice(-shownLines).join('\n')}`,
    )
  } finally {
    clearInterval(timer)
    clearTimeout(limit)
    options.signal?.removeEventListener('abort', kill)
  }
}
