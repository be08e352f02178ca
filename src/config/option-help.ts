import { type ConfigOption, listConfigOptions, namesOf } from './options.ts'
import type { configSchema } from './schema.ts'

type Group = keyof typeof configSchema.shape

/** What the options of each group are about. */
const groups: Readonly<Record<Group, string>> = {
  listen: 'ports for Envoy and for operators, TLS',
  tenant: 'the secret, and who a caller is',
  sessions: 'store (memory, Redis), limits, time to live',
  turns: 'lease of a turn, limits of a body',
  routing: 'engines, models, policy, health checks',
  engines: 'HTTPS and key of the calls to engines',
  kv: 'connector, folder, budget of a load, size of stored KV',
  pools: 'further pools of engines',
  admission: 'admission control',
  reaper: 'removal of expired sessions and their KV',
  responseCache: 'response cache',
  responses: 'responses and conversations with state',
  traces: 'OpenTelemetry: where spans go, which turns',
  log: 'level of the log',
}

export const optionGroups: readonly string[] = Object.keys(groups)

/** The groups, one line each. */
export const renderOptionGroups = (): string =>
  Object.entries(groups)
    .map(([group, about]) => `  ${group.padEnd(15)}${about}`)
    .join('\n')

/** The options of one group, two lines each. */
export const renderOptionGroup = (group: string): string =>
  listConfigOptions()
    .filter(({ path }) => path[0] === group)
    .map(renderOption)
    .join('\n')

const renderOption = (option: ConfigOption): string => {
  const { path, range, defaultText, description } = option
  const defaultPart = defaultText === undefined ? '' : `; default: ${defaultText}`
  const text = `  ${path.join('.')} (${namesOf(option).join(', ')}): ${range}${defaultPart}\n      ${description}`
  return text.replaceAll('`', '')
}
