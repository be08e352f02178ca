import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { InstallError } from '../launcher/install-once.ts'
import type { Environment, Report } from '../launcher/server-tool.ts'
import { findPython } from './find-python.ts'
import { ensurePythonEnvironment, environmentFolder } from './python-environment.ts'
import { availableResources, describeNeeds, shortageOf } from './resources.ts'
import { ensureSmallModel } from './small-model.ts'

/** Thrown before anything is installed or started, when memory or disk would clearly not do. */
export class NotEnoughError extends Error {
  override readonly name = 'NotEnoughError'
}

/** What a fleet's servers are started from. */
export interface PreparedMachine {
  readonly interpreter: string
  /** Relative to the folder. */
  readonly modelPath: string
}

/**
 * Says what a fleet takes, and makes what it is started from: the Python environment and the model.
 * @throws NotEnoughError, InstallError, or the signal's reason
 */
export const prepareMachine = async (options: {
  readonly folder: string
  readonly pods: number
  readonly env: Environment
  readonly report: Report
  readonly signal?: AbortSignal | undefined
}): Promise<PreparedMachine> => {
  const python = await findPython(options)
  if (!python.found) throw new InstallError(python.reason)
  await mkdir(options.folder, { recursive: true })
  const parts = { ...options, python: python.python }
  const fleet = { pods: options.pods, installed: existsSync(await environmentFolder(parts)) }
  options.report(`vLLM with LMCache ${describeNeeds(fleet)}`)
  const shortage = shortageOf(fleet, await availableResources(options.folder))
  if (shortage !== undefined) throw new NotEnoughError(shortage)
  const interpreter = await ensurePythonEnvironment(parts)
  return { interpreter, modelPath: await ensureSmallModel({ ...parts, interpreter }) }
}
