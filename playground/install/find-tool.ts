import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
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

/**
 * The tool named by its variable, else on `PATH`, else installed. A file named by the variable is never replaced by
 * another one. @throws InstallError when the tool is not available; its message is one line, and says what to do
 */
export const findTool = async (recipe: ToolRecipe, options: FindToolOptions): Promise<ServerTool> => {
  const { variable, program, directory } = recipe
  const named = options.env[variable]
  try {
    if (named !== undefined && named !== '') return await check(recipe, resolve(named), options)
    const onPath = await check(recipe, program, options).catch((error: InstallError) => error)
    if (!(onPath instanceof InstallError)) return onPath
    if (!existsSync(directory)) options.report?.(`${recipe.name}: ${onPath.message}; installing into ${directory}`)
    await installOnce(recipe)
    return await check(recipe, recipe.installed(directory), options)
  } catch (error) {
    if (!(error instanceof InstallError)) throw error
    throw new InstallError(`${recipe.name} is not available: ${error.message}. ${recipe.remedy}`)
  }
}

/** @throws InstallError when the file does not run or is too old */
const check = async (recipe: ToolRecipe, file: string, { env, signal }: FindToolOptions): Promise<ServerTool> => {
  const unusable = (reason: string): InstallError => new InstallError(`${file} cannot be used (${reason})`)
  const outcome = await runCommand({ command: [file, '--version'], env, signal })
  if (!outcome.ok) throw unusable(outcome.reason)
  const version = recipe.versionPattern.exec(`${outcome.stdout}\n${outcome.stderr}`)?.[1]
  if (version === undefined) throw unusable('its version is not known')
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor, leastMinor] = recipe.atLeast ?? [0, 0]
  const isOld = major < leastMajor || (major === leastMajor && minor < leastMinor)
  if (isOld) throw unusable(`it is ${version}, ${leastMajor}.${leastMinor} is needed`)
  return { command: [file], version }
}
