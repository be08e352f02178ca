import { spawn } from 'node:child_process'
import { startDeadline } from './deadline.ts'
import type { Command, Environment } from './server-tool.ts'

/** A short-lived program to run to its end. */
export interface RunCommandOptions {
  readonly command: Command
  readonly env: Environment
  /** Default: the working directory of this process. */
  readonly cwd?: string | undefined
  /** The program is killed after this time. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Output beyond this many characters per stream is dropped. Default: 4 Mi. */
  readonly maxOutputCharacters?: number | undefined
}

/** How a program ended. */
export type CommandOutcome =
  | { readonly ok: true; readonly stdout: string; readonly stderr: string }
  /** Not started, killed, or a non-zero exit status; `reason` is one line. */
  | { readonly ok: false; readonly reason: string; readonly stderr: string }

/** Runs a program to its end and collects what it printed. Never throws. */
export async function runCommand(options: RunCommandOptions): Promise<CommandOutcome> {
  const [file, ...args] = options.command
  const deadline = startDeadline(options)
  const limit = options.maxOutputCharacters ?? 4 * 1024 * 1024
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: deadline.signal,
    killSignal: 'SIGKILL',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout = (stdout + text).slice(0, limit)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, limit)
  })
  return new Promise((resolve) => {
    const settle = (outcome: CommandOutcome): void => {
      deadline.end()
      resolve(outcome)
    }
    const fail = (reason: string): void => settle({ ok: false, reason: `${file}: ${reason}`, stderr })
    child.once('error', (error) => {
      if (deadline.hasPassed()) fail(`no end after ${options.timeoutMs} ms`)
      else if (deadline.signal.aborted) fail('interrupted')
      else fail(error.message)
    })
    child.once('close', (code, killedBy) => {
      if (code === 0) settle({ ok: true, stdout, stderr })
      else fail(lastLine(stderr) ?? lastLine(stdout) ?? `ended with ${killedBy ?? `status ${code}`}`)
    })
  })
}

/** The last line that is not blank; of several, an error line is preferred. */
export function lastLine(text: string): string | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return lines.findLast((line) => /^(E:|error|fatal)/i.test(line)) ?? lines.at(-1)
}
