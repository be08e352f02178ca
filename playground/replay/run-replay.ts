import { writeFile } from 'node:fs/promises'
import { readTrace } from './read-trace.ts'
import { renderReplay, replayToJson } from './render-replay.ts'
import { parseReplayArguments, type ReplayOptions, replayUsage } from './replay-options.ts'
import type { ReplayResult } from './replay-record.ts'
import { replayTrace } from './replay-trace.ts'
import { createTraceSurvey } from './trace-facts.ts'
import { errorText, TraceError, type TraceRequest } from './trace-request.ts'

/** What the command line lends to a command. */
export interface ReplayConsole {
  /** Writes to the standard output; returns the exit code of success. */
  readonly print: (text: string) => number
  /** Writes to the standard error; returns the exit code of failure. */
  readonly fail: (text: string) => number
  /** Says how far a long replay is, now and then. */
  readonly note: (text: string) => void
}

/** The command `replay`: `args` are what stands behind it. Resolves to the exit code. */
export const runReplay = async (args: readonly string[], console: ReplayConsole): Promise<number> => {
  const parsed = parseReplayArguments(args)
  switch (parsed.kind) {
    case 'help':
      return console.print(replayUsage)
    case 'invalid':
      return console.fail(`${parsed.message}\nTry: context-cache-gateway replay --help`)
    case 'replay':
      try {
        return await replayAll(parsed.options, console)
      } catch (error) {
        if (error instanceof TraceError) return console.fail(error.message)
        throw error
      }
  }
}

const replayAll = async (options: ReplayOptions, console: ReplayConsole): Promise<number> => {
  const { settings, policies, tracePath, jsonPath } = options
  const survey = createTraceSurvey(settings)
  const progress = createProgress(console.note)
  const results: ReplayResult[] = []
  for (const policy of policies) {
    const isFirst = results.length === 0
    // Read anew for each policy: a trace need not fit into memory.
    const trace = readTrace(tracePath, {
      onRead: (share) =>
        progress(`${policy}: ${Math.floor(100 * share)} % (${results.length} of ${policies.length} policies done)`),
    })
    const surveyed = isFirst ? { onRequest: (request: TraceRequest) => survey.add(request) } : {}
    results.push(await replayTrace(trace, { settings, policy, ...surveyed }))
  }
  const report = { facts: survey.facts(), settings, results }
  if (jsonPath !== undefined) {
    try {
      await writeFile(jsonPath, replayToJson(report))
    } catch (error) {
      return console.fail(`${jsonPath} cannot be written: ${errorText(error)}`)
    }
  }
  return console.print(renderReplay(report))
}

const quietMs = 2000
const betweenNotesMs = 1000

/** Nothing for the first two seconds, then one note a second. */
const createProgress = (note: (text: string) => void): ((text: string) => void) => {
  let nextMs = performance.now() + quietMs
  return (text) => {
    const now = performance.now()
    if (now < nextMs) return
    nextMs = now + betweenNotesMs
    note(text)
  }
}
