/** Environment variables as the configuration loader hands them over. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A program and its leading arguments. */
export type Command = readonly [string, ...string[]]

/** Receives one line of progress, without a line end. */
export type Report = (line: string) => void

/** What every `find…` function needs to know. */
export interface FindToolOptions {
  /** Decides `PATH` and the `…_BIN` variables, and is the environment of every program that an installation runs. */
  readonly env: Environment
  /** The folder to install into, from `toolsDir()`. */
  readonly toolsDir: string
  /** Told what takes time. Default: silent. */
  readonly report?: Report | undefined
  /** Ends a running installation. */
  readonly signal?: AbortSignal | undefined
}

/** A server program that was run once with its version flag. */
export interface ServerTool {
  /** Complete in itself: library paths and the like are part of it, so that no environment has to go with it. */
  readonly command: Command
  /** As the program tells it, such as `1.40.0`. */
  readonly version: string
  /** Named by a variable, found on `PATH`, or installed into the tools folder. */
  readonly origin: 'variable' | 'path' | 'installed'
}

/** Whether a tool can be had on this machine. */
export type ToolOutcome =
  | { readonly found: true; readonly tool: ServerTool }
  /** `reason` is one line and ends with what to do next. */
  | { readonly found: false; readonly reason: string }

/** Thrown by `requireTool` when a tool cannot be had. */
export class ToolUnavailableError extends Error {
  override readonly name = 'ToolUnavailableError'
}

/**
 * The tool itself, for callers that cannot go on without it.
 * @throws ToolUnavailableError with the outcome's reason.
 */
export function requireTool(outcome: ToolOutcome): ServerTool {
  if (!outcome.found) throw new ToolUnavailableError(outcome.reason)
  return outcome.tool
}
