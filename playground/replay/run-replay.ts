import { writeFile } from 'node:fs/promises'
import { renderReplay, replayToJson } from './render-replay.ts'
import { parseReplayOptions, type ReplayOptions, replayUsage } from './replay-options.ts'
import { replayTrace } from './replay-trace.ts'
import { errorText, ReplayError, readTrace } from './trace.ts'
import { surveyTrace } from './trace-facts.ts'

/** What the command line lends to a command. */
export interface ReplayConsole {
  /** Writes to the standard output; returns the exit code of success. */
  readonly print: (text: string) => number
  /** Writes to the standard error; returns the exit code of failure. */
  readonly fail: (text: string) => number
}

/** The command `replay`: `args` are what stands behind it. Resolves to the exit code. */
export const runReplay = async (args: readonly string[], console: ReplayConsole): Promise<number> => {
  try {
    const options = parseReplayOptions(args)
    return console.print(options === 'help' ? replayUsage : await replayAll(options))
  } catch (error) {
    if (error instanceof ReplayError) return console.fail(error.message)
    throw error
  }
}

/** Resolves to what to print. */
const replayAll = async ({ settings, policies, tracePath, jsonPath }: ReplayOptions): Promise<string> => {
  const trace = await readTrace(tracePath)
  const results = policies.map((policy) => replayTrace(trace, { settings, policy }))
  const report = { facts: surveyTrace(trace, settings), settings, results }
  if (jsonPath !== undefined) {
    await writeFile(jsonPath, replayToJson(report)).catch((error: unknown) => {
      throw new ReplayError(`${jsonPath} cannot be written: ${errorText(error)}`)
    })
  }
  return renderReplay(report)
}
