import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { findOnPath } from './find-on-path.ts'
import { InstallError, installOnce } from './install-once.ts'
import { runCommand } from './run-command.ts'
import type { Command, FindToolOptions, ServerTool, ToolOutcome } from './server-tool.ts'

/** What a program's `--version` output says of it. */
export type VersionVerdict =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string }

/** How one server program is named, judged and installed. */
export interface ToolRecipe {
  /** For messages, such as `Envoy`. */
  readonly name: string
  /** The variable that names the program's file, such as `ENVOY_BIN`. */
  readonly variable: string
  /** The file name looked for on `PATH`. */
  readonly program: string
  /** What a user can do when the tool cannot be had; one sentence. */
  readonly remedy: string
  readonly judge: (versionOutput: string) => VersionVerdict
  /** The folder that `install` fills. */
  readonly directory: string
  /** @throws InstallError when it cannot be done on this machine. */
  readonly install: (into: string) => Promise<void>
  /** How the program in the filled folder is started. */
  readonly installedCommand: (directory: string) => Promise<Command>
}

const versionTimeoutMs = 15_000

/**
 * The tool named by its variable, else on `PATH`, else installed. A file named by the variable is never replaced by
 * another one: when it does not run, that is the answer.
 */
export async function findTool(recipe: ToolRecipe, options: FindToolOptions): Promise<ToolOutcome> {
  const named = options.env[recipe.variable]
  if (named !== undefined && named !== '') {
    const verdict = await judgeCommand(recipe, [resolve(named)], options)
    if (verdict.ok) return found([resolve(named)], verdict.version, 'variable')
    return missing(recipe, `${recipe.variable}=${named} cannot be used (${verdict.reason})`)
  }
  const onPath = await findOnPath(recipe.program, options.env)
  if (onPath !== undefined) {
    const verdict = await judgeCommand(recipe, [onPath], options)
    if (verdict.ok) return found([onPath], verdict.version, 'path')
    options.report?.(`${recipe.name}: ${onPath} is passed over (${verdict.reason})`)
  }
  return findInstalled(recipe, options)
}

/** An installation that does not run, because files were removed from it or the system changed, is made anew once. */
async function findInstalled(recipe: ToolRecipe, options: FindToolOptions): Promise<ToolOutcome> {
  const stood = existsSync(recipe.directory)
  try {
    const first = await installAndJudge(recipe, options)
    if (first.found || !stood) return first
    options.report?.(`${recipe.name}: the copy in ${recipe.directory} is replaced (${first.reason})`)
    await rm(recipe.directory, { recursive: true, force: true })
    return await installAndJudge(recipe, options)
  } catch (error) {
    if (error instanceof InstallError) return missing(recipe, error.message)
    throw error
  }
}

async function installAndJudge(recipe: ToolRecipe, options: FindToolOptions): Promise<ToolOutcome> {
  if (!existsSync(recipe.directory)) options.report?.(`${recipe.name}: installing into ${recipe.directory}`)
  await installOnce({ directory: recipe.directory, install: recipe.install })
  const command = await recipe.installedCommand(recipe.directory)
  const verdict = await judgeCommand(recipe, command, options)
  if (verdict.ok) return found(command, verdict.version, 'installed')
  return missing(recipe, `the installed copy cannot be used (${verdict.reason})`)
}

async function judgeCommand(recipe: ToolRecipe, command: Command, options: FindToolOptions): Promise<VersionVerdict> {
  const outcome = await runCommand({
    command: [...command, '--version'],
    env: options.env,
    timeoutMs: versionTimeoutMs,
    signal: options.signal,
  })
  return outcome.ok ? recipe.judge(`${outcome.stdout}\n${outcome.stderr}`) : { ok: false, reason: outcome.reason }
}

function found(command: Command, version: string, origin: ServerTool['origin']): ToolOutcome {
  return { found: true, tool: { command, version, origin } }
}

function missing(recipe: ToolRecipe, reason: string): ToolOutcome {
  return { found: false, reason: `${recipe.name} cannot be had: ${reason}. ${recipe.remedy}` }
}
