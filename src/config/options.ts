import { z } from 'zod'
import { configSchema } from './schema.ts'

/** One option of the configuration. */
export interface ConfigOption {
  readonly path: readonly string[]
  /** The environment variable that sets it, `CTX_<GROUP>_<FIELD>`. */
  readonly envName: string
  /** A second, shorter name. */
  readonly plainEnvName: string | undefined
  readonly kind: 'string' | 'number' | 'boolean' | 'list' | 'json'
  /** Type and limits, in words. */
  readonly range: string
  /** The default, in words; undefined: none. */
  readonly defaultText: string | undefined
  readonly description: string
}

/** The part of JSON Schema that the configuration uses. */
const nodeSchema = z.object({
  type: z.enum(['object', 'string', 'integer', 'number', 'boolean', 'array']),
  get properties() {
    return z.record(z.string(), nodeSchema).optional()
  },
  get items() {
    return nodeSchema.optional()
  },
  default: z.unknown().optional(),
  description: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  plainEnv: z.string().optional(),
  defaultText: z.string().optional(),
})

type Node = z.output<typeof nodeSchema>

/** Every option, in the order of the schema. */
export const listConfigOptions = (): readonly ConfigOption[] =>
  optionsUnder(nodeSchema.parse(z.toJSONSchema(configSchema, { io: 'input' })), [])

const optionsUnder = (node: Node, path: readonly string[]): readonly ConfigOption[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, child]) =>
    child.type === 'object'
      ? optionsUnder(child, [...path, name])
      : [{ ...toOption(child, [...path, name]), kind: isListOfObjects(child) ? 'json' : kinds[child.type] }],
  )

const toOption = (node: Node, path: readonly string[]): Omit<ConfigOption, 'kind'> => ({
  path,
  envName: envNameOf(path),
  plainEnvName: node.plainEnv,
  range: rangeOf(node),
  defaultText: node.defaultText ?? (node.default === undefined ? undefined : `\`${JSON.stringify(node.default)}\``),
  description: node.description ?? '',
})

const isListOfObjects = ({ items }: Node): boolean => items?.type === 'object'

const envNameOf = (path: readonly string[]): string =>
  ['CTX', ...path.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`))].join('_').toUpperCase()

const kinds: Readonly<Record<Exclude<Node['type'], 'object'>, ConfigOption['kind']>> = {
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  string: 'string',
}

const rangeOf = (node: Node): string => {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${value}\``).join(', ')
  if (isListOfObjects(node)) return 'list of objects; in the variable as JSON'
  if (node.type === 'array') return 'list of strings'
  if (node.type === 'string')
    return node.minLength !== undefined && node.minLength > 1
      ? `string of ${node.minLength} characters or more`
      : 'string'
  if (node.type === 'boolean') return '`true`, `false`'
  return `${node.type === 'integer' ? 'whole number' : 'number'}, ${node.minimum} to ${node.maximum}`
}

/** The environment variables that set an option. */
export const namesOf = ({ envName, plainEnvName }: ConfigOption): readonly string[] =>
  plainEnvName === undefined ? [envName] : [envName, plainEnvName]
