import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import { readJson } from '../json/read-json.ts'
import { checkAcrossOptions } from './checks.ts'
import { type Config, completeConfig } from './config.ts'
import { type ConfigProblem, renderProblems } from './config-problem.ts'
import { type ConfigOption, listConfigOptions } from './options.ts'
import { configSchema, type ParsedConfig } from './schema.ts'

/** Environment variables by name; an empty one counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>

export type LoadConfigOutcome =
  | { readonly kind: 'loaded'; readonly config: Config }
  /** All problems as text, without secrets. */
  | { readonly kind: 'invalid'; readonly problems: string }

/** Names the configuration file. Not an option. */
const configFileEnvName = 'CTX_CONFIG_FILE'

/** A YAML mapping. */
type Tree = Readonly<Record<string, unknown>>

/** Adds a problem. `path` is that of the option. */
type Report = (message: string, path?: readonly string[]) => void

/** An option that an environment variable sets. */
interface EnvironmentSetting {
  readonly path: readonly string[]
  readonly envName: string
  readonly value: unknown
}

/**
 * Reads the configuration: the environment overrides the YAML file, the file the defaults. `filePath` takes precedence over `CTX_CONFIG_FILE`;
 * without either no file is read. Default of `environment`: the environment of the process.
 */
export const loadConfig = (
  options: { readonly filePath?: string | undefined; readonly environment?: Environment } = {},
): LoadConfigOutcome => {
  const problems: ConfigProblem[] = []
  const report: Report = (message, path = []) => void problems.push({ message, path })
  const environment = withoutServiceVariables(options.environment ?? process.env)
  const file = readConfigFile(options.filePath ?? (environment[configFileEnvName] || undefined), report)
  const settings = readEnvironment(environment, report)
  const layered = settings.reduce((tree, { path, value }) => withValue(tree, path, value), file)
  const { tree, unread } = fillFromFiles(layered, report)
  const parsed = checkTree(tree, settings, (message, path = []) => {
    // An option whose file cannot be read is not reported as missing too.
    if (!unread.includes(path.join('.'))) report(message, path)
  })
  if (parsed === undefined || problems.length > 0) return { kind: 'invalid', problems: renderProblems(problems) }
  const generateSecret = (): string => randomBytes(32).toString('base64url')
  return { kind: 'loaded', config: completeConfig(parsed, { generateSecret }) }
}

/** Drops the variables that Kubernetes sets in every pod for a Service named `ctx-…`. */
const withoutServiceVariables = (environment: Environment): Environment => {
  const services = Object.keys(environment).flatMap((name) => /^(CTX_\w+)_SERVICE_HOST$/.exec(name)?.[1] ?? [])
  const isInjected = (name: string, value: string): boolean =>
    services.some((service) => {
      if (!name.startsWith(`${service}_`)) return false
      const rest = name.slice(service.length + 1)
      if (rest === 'PORT') return /^(?:tcp|udp|sctp):\/\//.test(value)
      return /^SERVICE_(?:HOST|PORT(?:_\w+)?)$|^PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(rest)
    })
  return Object.fromEntries(Object.entries(environment).filter(([name, value = '']) => !isInjected(name, value)))
}

/** Reads every option that the environment sets. Any other name that begins with `CTX_` is a problem: mostly it is misspelt. */
const readEnvironment = (environment: Environment, report: Report): readonly EnvironmentSetting[] => {
  const options = listConfigOptions()
  const known = new Set([configFileEnvName, ...options.flatMap(({ envName, plainEnvName }) => [envName, plainEnvName])])
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CTX_') && !known.has(name))
  for (const name of unknown.sort()) report(`Unknown environment variable ${name}`)
  return options.flatMap((option) => {
    const settings = settingsOf(option, environment)
    const [first, second] = settings.map(({ envName }) => envName)
    if (first !== undefined && second !== undefined && environment[first] !== environment[second])
      report(`${first} and ${second} are both set, and differ`, option.path)
    return settings
  })
}

const settingsOf = (
  { path, kind, envName, plainEnvName = envName }: ConfigOption,
  environment: Environment,
): readonly EnvironmentSetting[] =>
  [...new Set([envName, plainEnvName])].flatMap((name) => {
    const text = environment[name] ?? ''
    return text === '' ? [] : [{ path, envName: name, value: toValue(text, kind) }]
  })

/** Text of another kind is returned unchanged; the schema refuses it. */
const toValue = (text: string, kind: ConfigOption['kind']): unknown => {
  switch (kind) {
    case 'string':
      return text
    case 'number':
      return /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'list':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
    case 'json':
      return readJson(text) ?? text
  }
}

const readConfigFile = (filePath: string | undefined, report: Report): Tree => {
  if (filePath === undefined) return {}
  const text = readText(filePath)
  if (text === undefined) {
    report(`${filePath} cannot be read`)
    return {}
  }
  const document = parseDocument(text)
  // Only line and code: the messages quote lines of the file, which may hold a secret.
  for (const { code, linePos } of document.errors)
    report(`${filePath}, line ${linePos?.[0].line ?? 1}: no valid YAML (${code})`)
  if (document.errors.length > 0) return {}
  try {
    const value: unknown = document.toJS() ?? {}
    if (isTree(value)) return value
  } catch {
    // An alias without an anchor, or too many aliases.
  }
  report(`${filePath} must hold a mapping of options`)
  return {}
}

const readText = (filePath: string): string | undefined => {
  try {
    return readFileSync(filePath, 'utf8')
  } catch {
    return undefined
  }
}

/** Options that may be in a file of their own, and the options that name these files. */
const fileOptions: readonly FileOption[] = [
  { path: ['tenant', 'secret'], filePath: ['tenant', 'secretFile'] },
  { path: ['engines', 'apiKey'], filePath: ['engines', 'apiKeyFile'] },
  { path: ['sessions', 'redisUrl'], filePath: ['sessions', 'redisUrlFile'] },
]

interface FileOption {
  readonly path: readonly string[]
  readonly filePath: readonly string[]
}

/** Sets options from the files named for them, without surrounding white space. `unread`: options whose file cannot be read. */
const fillFromFiles = (tree: Tree, report: Report): { readonly tree: Tree; readonly unread: readonly string[] } => {
  const unread: string[] = []
  const fill = (from: Tree, { path, filePath }: FileOption, parents: readonly string[] = []): Tree => {
    const name = [...parents, ...path].join('.')
    const file = valueAt(from, filePath)
    if (typeof file !== 'string') return from
    const text = readText(file)
    if (text !== undefined && valueAt(from, path) === undefined) return withValue(from, path, text.trim())
    report(text === undefined ? 'The file cannot be read' : `Give either this or ${name}, not both`, [
      ...parents,
      ...filePath,
    ])
    if (text === undefined) unread.push(name)
    return from
  }
  const filled = fileOptions.reduce((from, option) => fill(from, option), tree)
  const { pools } = filled
  if (!Array.isArray(pools)) return { tree: filled, unread }
  const key = { path: ['apiKey'], filePath: ['apiKeyFile'] }
  const filledPools = pools.map((pool: unknown, index) =>
    isTree(pool) ? fill(pool, key, ['pools', `${index}`]) : pool,
  )
  return { tree: { ...filled, pools: filledPools }, unread }
}

/** Undefined: not valid by itself. */
const checkTree = (tree: Tree, settings: readonly EnvironmentSetting[], report: Report): ParsedConfig | undefined => {
  const whole = configSchema.safeParse(tree)
  const single = (whole.error?.issues ?? []).map(({ message, path }) => ({ message, path: path.map(String) }))
  for (const { message, path } of [...single, ...checkAcrossOptions(whole.data ?? validGroups(tree))]) {
    const setting = settings.find((candidate) => candidate.path.every((name, index) => path[index] === name))
    report(setting === undefined ? message : `${message} (set by ${setting.envName})`, path)
  }
  return whole.data
}

const validGroups = (tree: Tree): Partial<ParsedConfig> =>
  Object.fromEntries(
    Object.entries(configSchema.shape).flatMap(([name, schema]) => {
      const group = schema.safeParse(tree[name])
      return group.success ? [[name, group.data]] : []
    }),
  )

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value at a path; undefined if a part of the path is not a mapping. */
const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce((value, name) => (isTree(value) && Object.hasOwn(value, name) ? value[name] : undefined), tree)

/** A copy with `value` at the path. A part of the path that is not a mapping is kept for the schema to refuse. */
const withValue = (tree: Tree, path: readonly string[], value: unknown): Tree => {
  const [name, ...rest] = path
  if (name === undefined) return tree
  if (rest.length === 0) return { ...tree, [name]: value }
  const below = Object.hasOwn(tree, name) ? (tree[name] ?? {}) : {}
  return isTree(below) ? { ...tree, [name]: withValue(below, rest, value) } : tree
}
