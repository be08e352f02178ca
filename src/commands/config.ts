import { findStartProblems } from '../app/find-start-problems.ts'
import { findCreationFault } from '../app/serve.ts'
import { configJsonSchema } from '../config/json-schema.ts'
import { loadConfig } from '../config/load-config.ts'
import { redactConfig } from '../config/redact.ts'
import { type Command, type CommandContext, type ExitCode, parseAction } from './command.ts'

const actions = ['check', 'print', 'schema'] as const
const flags = { json: { type: 'boolean', default: false } } as const

/** `config check|print|schema [FILE]`: what a configuration is worth, without a gateway that runs. */
export const configCommand: Command = async (context) => {
  const parsed = parseAction(context.args, flags, actions)
  if (typeof parsed === 'string') return context.failUsage(parsed)
  const { action, argument: file, values } = parsed
  const options = { file, json: values.json }
  switch (action) {
    case 'check':
      return checkConfig(context, options)
    case 'print':
      return printConfig(context, options)
    case 'schema':
      if (file !== undefined) return context.failUsage(`The argument ${file} is one too many.`)
      return context.print(JSON.stringify(configJsonSchema(), null, 2))
  }
}

interface ConfigOptions {
  /** Default: as `serve` finds it. */
  readonly file: string | undefined
  readonly json: boolean
}

/** Prints every problem that keeps a gateway with this configuration from working, a line each. Listens nowhere. */
export const checkConfig = async (
  { print, fail, version }: Pick<CommandContext, 'print' | 'fail' | 'version'>,
  { file, json }: ConfigOptions,
): Promise<ExitCode> => {
  const loaded = loadConfig({ filePath: file })
  const found = [
    ...(loaded.kind === 'invalid' ? loaded.problems.split('\n') : []),
    ...(await findStartProblems(loaded.groups, 'check')).map(loaded.describe),
  ]
  const fault =
    loaded.kind === 'invalid' || found.length > 0 ? undefined : await findCreationFault(loaded.config, version)
  const problems = fault === undefined ? found : [fault]
  if (json) {
    print(JSON.stringify({ valid: problems.length === 0, problems }, null, 2))
    return problems.length === 0 ? 0 : 1
  }
  if (problems.length === 0) return print('The configuration is valid.')
  return fail(fault ?? invalidText(problems))
}

/** Prints the effective configuration as JSON, without secrets. */
export const printConfig = async (
  { print, fail }: Pick<CommandContext, 'print' | 'fail'>,
  { file }: Pick<ConfigOptions, 'file'>,
): Promise<ExitCode> => {
  const loaded = loadConfig({ filePath: file })
  if (loaded.kind === 'invalid') return fail(invalidText([loaded.problems]))
  return print(JSON.stringify(redactConfig(loaded.config), null, 2))
}

/** What `serve` and the checks say of a configuration. */
export const invalidText = (problems: readonly string[]): string =>
  ['The configuration is not valid:', ...problems].join('\n')
