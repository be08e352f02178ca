import { execFile } from 'node:child_process'

/** Environment variables of a program. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A program and its arguments. */
export type Command = readonly [string, ...string[]]

/**
 * Command line flags: `true` is a flag without a value, a list one flag for each of its values, an object is passed as
 * JSON, and undefined adds nothing.
 */
export const flags = (values: Readonly<Record<string, FlagValue>>): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined) return []
    if (value === true) return [`--${name}`]
    if (Array.isArray(value)) return value.flatMap((one) => [`--${name}`, String(one)])
    return [`--${name}`, typeof value === 'object' ? JSON.stringify(value) : String(value)]
  })

type FlagValue = string | number | true | object | undefined

/** Receives one line of progress, without a line end. */
export type Report = (line: string) => void

/** How a program ended. */
export type CommandOutcome =
  | { readonly ok: true; readonly stdout: string; readonly stderr: string }
  /** Not started, killed, or a non-zero exit status; `reason` is one line. */
  | { readonly ok: false; readonly reason: string; readonly stderr: string }

const maxOutputBytes = 64 * 1024 * 1024

/** Runs a short-lived program to its end and collects its output. Never throws. */
export const runCommand = (options: {
  readonly command: Command
  readonly env: Environment
  /** Default: the working directory of this process. */
  readonly cwd?: string | undefined
  /** The program is killed after this time. Default: a minute. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}): Promise<CommandOutcome> => {
  const [file, ...args] = options.command
  const { cwd, timeoutMs = 60_000, signal } = options
  const limits = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: maxOutputBytes } as const
  return new Promise((resolve) => {
    execFile(file, args, { ...limits, cwd, signal, env: { ...options.env } }, (error, stdout, stderr) => {
      if (error === null) return resolve({ ok: true, stdout, stderr })
      const ended = typeof error.code === 'number' ? `ended with status ${error.code}` : error.message
      const said = error.killed === true ? `no end after ${timeoutMs} ms` : (lastLine(stderr) ?? lastLine(stdout))
      resolve({ ok: false, reason: `${file}: ${said ?? ended}`, stderr })
    })
  })
}

const lastLine = (text: string): string | undefined => text.trim().split('\n').at(-1) || undefined
