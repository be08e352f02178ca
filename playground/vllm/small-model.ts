import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installOnce } from '../launcher/install-once.ts'
import type { Environment, Report } from '../launcher/server-tool.ts'
import { runReported } from './run-reported.ts'
import { runtimeFile } from './runtime-files.ts'

/** Which interpreter makes the model, and where. */
export interface SmallModelOptions {
  /** From `ensurePythonEnvironment`. */
  readonly interpreter: string
  /** The model becomes `models/<name>` in here. */
  readonly folder: string
  readonly env: Environment
  readonly report: Report
  readonly signal?: AbortSignal | undefined
}

const timeoutMs = 300_000

/**
 * A Llama of 86 million random weights (170 MB) with a tokenizer and a chat template, made on first use.
 * Answers its path within `folder`: that is how the servers are given it, because LMCache names every chunk, and every
 * file of its store, after the path.
 * @throws InstallError
 */
export const ensureSmallModel = async (options: SmallModelOptions): Promise<string> => {
  const script = runtimeFile('make-model.py')
  const hash = createHash('sha256').update(await readFile(script))
  const path = join('models', `small-${hash.digest('hex').slice(0, 8)}`)
  await installOnce({
    directory: join(options.folder, path),
    install: (into) => {
      const name = 'making a small model with random weights'
      options.report(name)
      return runReported({ ...options, name, command: [options.interpreter, script, into], timeoutMs })
    },
  })
  return path
}
