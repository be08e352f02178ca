import { type ConfigOption, listConfigOptions } from './config-options.ts'
import type { ConfigProblem } from './config-problem.ts'

/** Environment variables by name; an empty one counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>

/** An option that an environment variable sets. */
export interface EnvironmentSetting {
  readonly path: readonly string[]
  readonly envName: string
  readonly value: unknown
}

/** Says where the configuration file is. No option itself. */
export const configFileEnvName = 'CTX_CONFIG_FILE'

/** Reads every option that the environment sets. A `CTX_` name that is no option is a problem, since it is mostly a misspelt one. */
export const readEnvironment = (
  environment: Environment,
): { readonly settings: readonly EnvironmentSetting[]; readonly problems: readonly ConfigProblem[] } => {
  const options = listConfigOptions()
  const known = new Set([configFileEnvName, ...options.flatMap(({ envName, plainEnvName }) => [envName, plainEnvName])])
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CTX_') && !known.has(name))
  const clashes = options.filter((option) => {
    const [long, plain] = [textOf(environment, option.envName), textOf(environment, option.plainEnvName)]
    return long !== undefined && plain !== undefined && long !== plain
  })
  return {
    settings: options.flatMap((option) => settingOf(option, environment)),
    problems: [
      ...unknown.sort().map((name) => ({ message: `Unknown environment variable ${name}`, path: [] })),
      ...clashes.map(({ envName, plainEnvName, path }) => ({
        message: `${envName} and ${plainEnvName} are both set, and differ`,
        path,
      })),
    ],
  }
}

const settingOf = (option: ConfigOption, environment: Environment): readonly EnvironmentSetting[] =>
  [option.envName, option.plainEnvName].flatMap((envName) => {
    const text = textOf(environment, envName)
    if (text === undefined || envName === undefined) return []
    return [{ path: option.path, envName, value: toValue(text, option.kind) }]
  })

const textOf = (environment: Environment, name: string | undefined): string | undefined => {
  const text = name === undefined ? undefined : environment[name]
  return text === '' ? undefined : text
}

/** What is not of the wanted kind stays a text, which the schema then refuses. */
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
  }
}
