import { randomBytes } from 'node:crypto'
import { readJson } from '../json/read-json.ts'
import { checkAcrossOptions } from './checks.ts'
import { type Config, completeConfig } from './config.ts'
import { noConfigFile, readConfigFile, readText } from './config-file.ts'
import type { ConfigProblem } from './config-problem.ts'
import { type Tree, valueAt, withValue } from './config-tree.ts'
import { describeProblem, hint, problemsOfIssue } from './describe-problem.ts'
import { type ConfigOption, listConfigOptions, namesOf, readUnits } from './options.ts'
import { configSchema, type ParsedConfig } from './schema.ts'

/** Environment variables by name; an empty one counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>

export type LoadConfigOutcome = {
  /** The groups that are valid by themselves, for checks of what they name. */
  readonly groups: Partial<ParsedConfig>
  /** A problem that such a check found, as one line in the form of `problems`. */
  readonly describe: (problem: ConfigProblem) => string
} & (
  | { readonly kind: 'loaded'; readonly config: Config }
  /** All problems, one a line, without secrets. */
  | { readonly kind: 'invalid'; readonly problems: string }
)

/** Names the configuration file. Not an option. */
const configFileEnvName = 'CTX_CONFIG_FILE'

/** Adds a problem. `path` is that of the option. */
type Report = (message: string, path?: readonly string[]) => void

/** An option that an environment variable sets. */
interface EnvironmentSetting {
  readonly path: readonly string[]
  readonly envName: string
  readonly value: unknown
}

/**
 * Reads the configuration: the environment overrides the YAML file, the file the defaults. `filePath` overrides
 * `CTX_CONFIG_FILE`; without either no file is read. Default of `environment`: that of the process.
 */
export const loadConfig = (
  options: {
    readonly filePath?: string | undefined
    readonly environment?: Environment
    /** Of the gateway that runs: a secret that was made at its start is kept. Default: it starts. */
    readonly previous?: Config
  } = {},
): LoadConfigOutcome => {
  const environment = withoutServiceVariables(options.environment ?? process.env)
  const filePath = configFileOf(options.filePath, environment)
  const file = filePath === undefined ? noConfigFile : readConfigFile(filePath)
  const problems: ConfigProblem[] = file.problem === undefined ? [] : [{ message: file.problem, path: [] }]
  const report: Report = (message, path = []) => void problems.push({ message, path })
  const settings = readEnvironment(environment, report)
  const layered = settings.reduce((tree, { path, value }) => withValue(tree, path, value), file.tree)
  const { tree, filled, unread } = fillFromFiles(layered, report)
  const isSetByEnvironment = (path: readonly string[]) => settings.find((setting) => isBelow(path, setting.path))
  const sources = {
    tree,
    variableOf: (path: readonly string[]) => isSetByEnvironment(path)?.envName,
    placeInFile: file.placeOf,
  }
  const describe: LoadConfigOutcome['describe'] = (problem) => {
    const path = filled.get(problem.path.join('.'))
    return describeProblem(path === undefined ? problem : { path, message: `its content ${problem.message}` }, sources)
  }

  const numeric = readUnits(tree)
  const whole = configSchema.safeParse(numeric)
  const groups = file.problem === undefined ? (whole.data ?? validGroups(numeric)) : {}
  const found = [
    ...(whole.error?.issues ?? []).flatMap((issue) => problemsOfIssue(issue, tree)),
    ...checkAcrossOptions(groups),
  ].filter(({ path }) =>
    // What an unreadable file would set is not reported as missing too.
    file.problem === undefined ? !unread.has(path.join('.')) : isSetByEnvironment(path) !== undefined,
  )
  const lines = [...problems, ...found].map(describe)
  if (whole.data === undefined || lines.length > 0)
    return { kind: 'invalid', problems: lines.join('\n'), groups, describe }
  const generateSecret = (): string => options.previous?.tenant.secret ?? randomBytes(32).toString('base64url')
  return { kind: 'loaded', config: completeConfig(whole.data, { generateSecret }), groups, describe }
}

/** The file that is read: the one that is given, else that of `CTX_CONFIG_FILE`, else none. */
export const configFileOf = (given: string | undefined, environment: Environment = process.env): string | undefined =>
  given ?? (environment[configFileEnvName] || undefined)

const isBelow = (path: readonly string[], group: readonly string[]): boolean =>
  group.every((name, index) => path[index] === name)

/** Drops the variables that Kubernetes sets in every pod for a Service named `ctx` or `ctx-…`. */
const withoutServiceVariables = (environment: Environment): Environment => {
  const services = Object.keys(environment).flatMap((name) => /^(CTX(?:_\w+)?)_SERVICE_HOST$/.exec(name)?.[1] ?? [])
  const isInjected = (name: string, value: string): boolean =>
    services.some((service) => {
      if (!name.startsWith(`${service}_`)) return false
      const rest = name.slice(service.length + 1)
      if (rest === 'PORT') return /^(?:tcp|udp|sctp):\/\//.test(value)
      return /^SERVICE_(?:HOST|PORT(?:_\w+)?)$|^PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(rest)
    })
  return Object.fromEntries(Object.entries(environment).filter(([name, value = '']) => !isInjected(name, value)))
}

/** Reads every option that the environment sets. Any other `CTX_` name is a problem: mostly it is misspelt. */
const readEnvironment = (environment: Environment, report: Report): readonly EnvironmentSetting[] => {
  const options = listConfigOptions()
  const known = new Set([configFileEnvName, ...options.flatMap(namesOf)])
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CTX_') && !known.has(name))
  for (const name of unknown.sort()) report(`${name}: no such option${hint(name, [...known])}`)
  return options.flatMap((option) => {
    const settings = settingsOf(option, environment)
    const [first, second] = settings.map(({ envName }) => envName)
    if (first !== undefined && second !== undefined && environment[first] !== environment[second])
      report(`${first} and ${second} are both set, and differ`, option.path)
    return settings
  })
}

const settingsOf = (option: ConfigOption, environment: Environment): readonly EnvironmentSetting[] =>
  namesOf(option).flatMap((envName) => {
    const text = environment[envName] ?? ''
    return text === '' ? [] : [{ path: option.path, envName, value: toValue(text, option.type) }]
  })

/** Text of another type is returned unchanged; the schema refuses it. */
const toValue = (text: string, type: ConfigOption['type']): unknown => {
  switch (type) {
    case 'integer':
    case 'number':
      return /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'array':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
    case 'list of objects':
      return readJson(text) ?? text
    case 'string':
    case 'object':
      return text
  }
}

/** Options that may be in a file of their own, which the option `…File` names. */
const fileOptions = [
  'listen.admin.token',
  'tenant.secret',
  'tenant.previousSecret',
  'engines.apiKey',
  'sessions.redisUrl',
  'sessions.redisCluster',
  'sessions.redisSentinels',
  'sessions.redisSentinelPassword',
]

/** Sets options from the files named for them, without surrounding white space. */
const fillFromFiles = (tree: Tree, report: Report) => {
  const { pools } = tree
  const ofPools = (Array.isArray(pools) ? pools : []).map((_, index) => `pools.${index}.apiKey`)
  /** The options that were read, by name, with the option that names the file. */
  const filled = new Map<string, readonly string[]>()
  /** Options whose file cannot be read. */
  const unread = new Set<string>()
  const fill = (from: Tree, option: string): Tree => {
    const [path, filePath] = [option.split('.'), `${option}File`.split('.')]
    const file = valueAt(from, filePath)
    if (typeof file !== 'string') return from
    const content = readText(file)
    if ('problem' in content) {
      unread.add(option)
      report(content.problem, filePath)
      return from
    }
    if (valueAt(from, path) !== undefined) {
      report(`give either this or ${option}, not both`, filePath)
      return from
    }
    filled.set(option, filePath)
    return withValue(from, path, content.text.trim())
  }
  return { tree: [...fileOptions, ...ofPools].reduce(fill, tree), filled, unread }
}

const validGroups = (tree: unknown): Partial<ParsedConfig> =>
  Object.fromEntries(
    Object.entries(configSchema.shape).flatMap(([name, schema]) => {
      const group = schema.safeParse(valueAt(tree, [name]))
      return group.success ? [[name, group.data]] : []
    }),
  )
