import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { ownEnvironment } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { type ChartTools, installChartTools } from './chart-tools.ts'

/** The repository. */
export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const chart = join(root, 'deploy/helm/context-cache-gateway')
const env = ownEnvironment()

const manifest = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  data: z.record(z.string(), z.string()).optional(),
})
export type Manifest = z.infer<typeof manifest>

export const manifestsOf = (text: string): readonly Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((value) => value !== null)
    .map((value) => manifest.parse(value))

/** The chart's tools, from a suite's first test to its last. */
export interface ChartUnderTest {
  readonly tools: () => ChartTools
  /** For files of the tests. */
  readonly folder: () => string
  /** Resolves to what the program prints. @throws Error with what it says to standard error */
  readonly run: (command: readonly [string, ...string[]]) => Promise<string>
  /** A release named `ctx`. */
  readonly render: (...flags: readonly string[]) => Promise<string>
  readonly expectValid: (file: string) => Promise<void>
}

export const useChart = (): ChartUnderTest => {
  let tools: ChartTools
  let folder: string
  beforeAll(async () => {
    tools = await installChartTools()
    folder = await mkdtemp(join(tmpdir(), 'chart-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const run: ChartUnderTest['run'] = async (command) => {
    const path = `${dirname(tools.helm)}:${env['PATH']}`
    const outcome = await runCommand({ command, env: { ...env, PATH: path }, cwd: root, timeoutMs: 60_000 })
    if (!outcome.ok) throw new Error(`${outcome.reason}\n${outcome.stderr}`)
    return outcome.stdout
  }
  return {
    tools: () => tools,
    folder: () => folder,
    run,
    render: (...flags) => run([tools.helm, 'template', 'ctx', chart, ...flags]),
    expectValid: async (file) => {
      const locations = tools.schemaLocations.flatMap((location) => ['-schema-location', location])
      const summary = await run([tools.kubeconform, '-strict', '-summary', ...locations, file])
      expect(summary).toMatch(/Valid: [1-9]\d*, Invalid: 0, Errors: 0, Skipped: 0/)
    },
  }
}
