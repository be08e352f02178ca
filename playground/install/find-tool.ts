import { constants, existsSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { type Command, type Environment, type Report, runCommand } from '../run-command.ts'
import { InstallError, installOnce } from './install-once.ts'

/** What every `find…` function needs to know. */
export interface FindToolOptions {
  /** Decides `PATH` and the `…_BIN` variables, and is the environment of every program that an installation runs. */
  readonly env: Environment
  /** The folder to install into, from `toolsDir()`. */
  readonly toolsDir: string
  /** Receives what takes time. Default: silent. */
  readonly report?: Report | undefined
  /** Ends a running installation. */
  readonly signal?: AbortSignal | undefined
}

/** A server program that was run once with its version flag. */
export interface ServerTool {
  readonly command: Command
  /** Such as `1.40.0`. */
  readonly version: string
  /** Named by a variable, found on `PATH`, or installed. */
  readonly origin: 'variable' | 'path' | 'installed'
}

export type ToolOutcome =
  | { readonly found: true; readonly tool: ServerTool }
  /** `reason` is one line and ends with what to do next. */
  | { readonly found: false; readonly reason: string }

/** @throws InstallError when the tool is not available */
export const requireTool = (outcome: ToolOutcome): ServerTool => {
  if (!outcome.found) throw new InstallError(outcome.reason)
  return outcome.tool
}

/** How one server program is named, checked and installed. */
export interface ToolRecipe {
  /** For messages, such as `Envoy`. */
  readonly name: string
  /** The variable that names the program's file, such as `ENVOY_BIN`. */
  readonly variable: string
  /** The file name looked for on `PATH`. */
  readonly program: string
  /** What a user can do when the tool is not available; one sentence. */
  readonly remedy: string
  /** Its first group is the version in the program's `--version` output. */
  readonly versionPattern: RegExp
  /** The oldest version that is accepted, major and minor. Default: any. */
  readonly atLeast?: readonly [major: number, minor: number]
  /** The folder that `install` fills. */
  readonly directory: string
  /** @throws InstallError when it is not possible on this machine */
  readonly install: (into: string) => Promise<void>
  /** The program's file in the installed folder. */
  readonly installed: (directory: string) => string
}

const versionTimeoutMs = 15_000

/** The tool named by its variable, else on `PATH`, else installed. A file named by the variable is never replaced by another one. */
export const findTool = async (recipe: ToolRecipe, options: FindToolOptions): Promise<ToolOutcome> => {
  const missing = (reason: string): ToolOutcome => ({
    found: false,
    reason: `${recipe.name} is not available: ${reason}. ${recipe.remedy}`,
  })
  const check = async (file: string, origin: ServerTool['origin']): Promise<ToolOutcome> => {
    const version = await checkVersion(recipe, file, options)
    return version.ok
      ? { found: true, tool: { command: [file], version: version.version, origin } }
      : missing(`${file} cannot be used (${version.reason})`)
  }
  const named = options.env[recipe.variable]
  if (named !== undefined && named !== '') return check(resolve(named), 'variable')
  const onPath = await findOnPath(recipe.program, options.env)
  if (onPath !== undefined) {
    const found = await check(onPath, 'path')
    if (found.found) return found
    options.report?.(found.reason)
  }
  if (!existsSync(recipe.directory)) options.report?.(`${recipe.name}: installing into ${recipe.directory}`)
  try {
    await installOnce(recipe)
  } catch (error) {
    if (error instanceof InstallError) return missing(error.message)
    throw error
  }
  return check(recipe.installed(recipe.directory), 'installed')
}

const checkVersion = async (
  recipe: ToolRecipe,
  file: string,
  { env, signal }: FindToolOptions,
): Promise<{ readonly ok: true; readonly version: string } | { readonly ok: false; readonly reason: string }> => {
  const outcome = await runCommand({ command: [file, '--version'], env, signal, timeoutMs: versionTimeoutMs })
  if (!outcome.ok) return outcome
  const version = recipe.versionPattern.exec(`${outcome.stdout}\n${outcome.stderr}`)?.[1]
  if (version === undefined) return { ok: false, reason: 'its version is not known' }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor, leastMinor] = recipe.atLeast ?? [0, 0]
  const isOld = major < leastMajor || (major === leastMajor && minor < leastMinor)
  if (isOld) return { ok: false, reason: `it is ${version}, ${leastMajor}.${leastMinor} is needed` }
  return { ok: true, version }
}

/** The absolute path of the first executable file called `name` in the folders of `env.PATH`, or undefined. */
export const findOnPath = async (name: string, env: Environment): Promise<string | undefined> => {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(folder, name)
    if (folder.startsWith('/') && (await isExecutableFile(candidate))) return candidate
  }
  return undefined
}

const isExecutableFile = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
