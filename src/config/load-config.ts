import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Document, parseDocument } from 'yaml'
import { type Config, settleConfig } from './config.ts'
import { fillFromFiles, isTree, overlayEnvironment, type Tree } from './config-layers.ts'
import { type ConfigProblem, renderProblems } from './config-problem.ts'
import { configSchema, type ParsedConfig } from './config-schema.ts'
import { checkAcrossOptions } from './cross-checks.ts'
import { configFileEnvName, type Environment, type EnvironmentSetting, readEnvironment } from './read-environment.ts'

export type LoadConfigOutcome =
  | { readonly kind: 'loaded'; readonly config: Config }
  /** All that is wrong, as a text for people; no secret stands in it. */
  | { readonly kind: 'invalid'; readonly problems: string }

/**
 * Reads the configuration: the environment over the YAML file over the defaults. The only reader of the process's environment.
 * `filePath` goes before `CTX_CONFIG_FILE`; without either there is no file. `environment` is the process's own by default.
 */
export const loadConfig = (
  options: { readonly filePath?: string | undefined; readonly environment?: Environment } = {},
): LoadConfigOutcome => {
  const environment = options.environment ?? process.env
  const fromEnvironment = readEnvironment(environment)
  const fromFile = readConfigFile(options.filePath ?? (environment[configFileEnvName] || undefined))
  const layered = overlayEnvironment(fromFile.tree, fromEnvironment.settings)
  const complete = fillFromFiles(layered, readText)
  const checked = checkTree(complete.tree, fromEnvironment.settings)
  const unread = new Set(complete.unread.map((path) => path.join('.')))
  const problems = [
    ...fromFile.problems,
    ...fromEnvironment.problems,
    ...complete.problems,
    // That an option is missing whose file cannot be read follows from that, and need not be said.
    ...(checked.kind === 'valid' ? [] : checked.problems.filter(({ path }) => !unread.has(path.join('.')))),
  ]
  if (checked.kind === 'valid' && problems.length === 0) {
    const generateSecret = (): string => randomBytes(32).toString('base64url')
    return { kind: 'loaded', config: settleConfig(checked.parsed, { generateSecret }) }
  }
  return { kind: 'invalid', problems: renderProblems(problems) }
}

interface ConfigFile {
  readonly tree: Tree
  readonly problems: readonly ConfigProblem[]
}

const readConfigFile = (filePath: string | undefined): ConfigFile => {
  if (filePath === undefined) return { tree: {}, problems: [] }
  const text = readText(filePath)
  if (text === undefined) return { tree: {}, problems: [{ message: `${filePath} cannot be read`, path: [] }] }
  const document = parseDocument(text)
  // Their messages quote the lines around the mistake, and with them perhaps a secret.
  const problems = document.errors.map(({ code, linePos }) => ({
    message: `${filePath}, line ${linePos?.[0].line ?? 1}: no valid YAML (${code})`,
    path: [],
  }))
  if (problems.length > 0) return { tree: {}, problems }
  const value = toValue(document)
  if (isTree(value)) return { tree: value, problems: [] }
  return { tree: {}, problems: [{ message: `${filePath} must hold a mapping of options`, path: [] }] }
}

/** Undefined when an alias leads nowhere, or when there are suspiciously many. */
const toValue = (document: Document): unknown => {
  try {
    return document.toJS() ?? {}
  } catch {
    return undefined
  }
}

const readText = (filePath: string): string | undefined => {
  try {
    return readFileSync(filePath, 'utf8')
  } catch {
    return undefined
  }
}

type Checked =
  | { readonly kind: 'valid'; readonly parsed: ParsedConfig }
  | { readonly kind: 'invalid'; readonly problems: readonly ConfigProblem[] }

const checkTree = (tree: Tree, settings: readonly EnvironmentSetting[]): Checked => {
  const whole = configSchema.safeParse(tree)
  const across = checkAcrossOptions(whole.success ? whole.data : validGroups(tree))
  if (whole.success && across.length === 0) return { kind: 'valid', parsed: whole.data }
  const single = (whole.error?.issues ?? []).map(({ message, path }) => ({ message, path: path.map(String) }))
  return { kind: 'invalid', problems: [...single, ...across].map((problem) => nameSource(problem, settings)) }
}

const validGroups = (tree: Tree): Partial<ParsedConfig> =>
  Object.fromEntries(
    Object.entries(configSchema.shape).flatMap(([name, schema]) => {
      const group = schema.safeParse(tree[name])
      return group.success ? [[name, group.data]] : []
    }),
  )

const nameSource = (problem: ConfigProblem, settings: readonly EnvironmentSetting[]): ConfigProblem => {
  const setting = settings.find(({ path }) => path.every((name, index) => problem.path[index] === name))
  return setting === undefined ? problem : { ...problem, message: `${problem.message} (set by ${setting.envName})` }
}
