/** Prints a line to standard output or standard error and returns the exit code that belongs to it. */
export type PrintLine = (line: string) => number

/** What a command of the playground may use of its process. */
export interface CommandContext {
  /** Arguments behind the command's name. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly print: PrintLine
  /** Prints to standard error; the exit code is 1. */
  readonly fail: PrintLine
  /** Resolves with the first SIGINT or SIGTERM. */
  readonly untilStopped: () => Promise<unknown>
}

/** The commands of the playground, which is loaded only when one is asked for. Each resolves to the exit code. */
export interface PlaygroundCommands {
  run(context: CommandContext): Promise<number>
  'vllm-up'(context: CommandContext): Promise<number>
  replay(context: CommandContext): Promise<number>
}

export declare const playgroundCommands: PlaygroundCommands
