import { unknownName } from '../commandline/nearest-name.ts'
import { type Flags, parseFlags } from '../commandline/parse-flags.ts'

/** What an operator's command may use of its process. */
export interface CommandContext {
  /** Arguments behind the command's name. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** The gateway's version. */
  readonly version: string
  /** Standard output, and what it is. */
  readonly output: {
    readonly isTerminal: boolean
    /** Columns and rows of the terminal now. */
    size(): { readonly columns: number; readonly rows: number }
    write(text: string): void
    onResize(listener: () => void): void
  }
  /** All of standard input. */
  readonly readInput: () => Promise<string>
  /** Prints a line to standard output; the exit code is 0. */
  readonly print: (line: string) => ExitCode
  /** Prints a line to standard error; the exit code is 1. */
  readonly fail: (line: string) => ExitCode
  /** Prints what is wrong with the arguments, and where the help is; the exit code is 2. */
  readonly failUsage: (message: string) => ExitCode
  /** Resolves with the first SIGINT or SIGTERM. */
  readonly untilStopped: () => Promise<unknown>
}

/** Reads a command line of an action and at most one argument; a text: what is wrong with it. */
export const parseAction = <const T extends Flags, const Action extends string>(
  args: readonly string[],
  flags: T,
  actions: readonly Action[],
) => {
  const parsed = parseFlags(args, flags, { maxPositionals: 2 })
  if (parsed.kind === 'invalid') return parsed.message
  const [name, argument] = parsed.positionals
  if (name === undefined) return `Say what to do: ${actions.join(', ')}.`
  const action = actions.find((known) => known === name)
  return action === undefined ? unknownName('action', name, actions) : { action, argument, values: parsed.values }
}

/** 0: fine. 1: problems were found, or what was asked for does not exist or cannot be reached. 2: wrong usage. */
export type ExitCode = 0 | 1 | 2

/** A command of operators. Resolves to the exit code. */
export type Command = (context: CommandContext) => Promise<ExitCode>
