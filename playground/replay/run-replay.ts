import { writeFile } from 'node:fs/promises'
import type { CommandContext } from '../../src/playground-commands.d.ts'
import { renderReplay, replayToJson } from './render-replay.ts'
import { parseReplayOptions, type ReplayOptions } from './replay-options.ts'
import type { ReplayResult } from './replay-record.ts'
import { replayTrace } from './replay-trace.ts'
import { replayWithSlots } from './slots/replay-slots.ts'
import { errorText, ReplayError, readTrace } from './trace.ts'
import { surveyTrace } from './trace-facts.ts'

/** `context-cache-gateway replay`. Resolves to the exit code. */
export const runReplay = async (context: Pick<CommandContext, 'args' | 'print' | 'fail'>): Promise<number> => {
  try {
    return context.print(await replayAll(parseReplayOptions(context.args)))
  } catch (error) {
    if (error instanceof ReplayError) return context.fail(error.message)
    throw error
  }
}

/** Resolves to what to print. */
const replayAll = async ({ settings, policies, tracePath, jsonPath }: ReplayOptions): Promise<string> => {
  const trace = await readTrace(tracePath)
  const { slots } = settings
  const results: ReplayResult[] = []
  for (const policy of policies) {
    results.push(
      slots === undefined
        ? replayTrace(trace, { settings, policy })
        : await replayWithSlots(trace, { settings, policy, slots }),
    )
  }
  const report = { facts: surveyTrace(trace, settings), settings, results }
  if (jsonPath !== undefined) {
    await writeFile(jsonPath, replayToJson(report)).catch((error: unknown) => {
      throw new ReplayError(`${jsonPath} cannot be written: ${errorText(error)}`)
    })
  }
  return renderReplay(report)
}
