import { z } from 'zod'
import { parseQuantity, unitsOf } from '../options/quantity.ts'
import { isTree } from './config-tree.ts'
import { configSchema } from './schema.ts'

/** One option of the configuration. */
export interface ConfigOption {
  readonly path: readonly string[]
  /** The environment variable that sets it, `CTX_<GROUP>_<FIELD>`. */
  readonly envName: string
  /** A second, shorter name. */
  readonly plainEnvName: string | undefined
  readonly type: Node['type'] | 'list of objects'
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
  secret: z.enum(['whole', 'credentials']).optional(),
  unit: z.enum(['ms', 's', 'bytes']).optional(),
  defaultText: z.string().optional(),
})

type Node = z.output<typeof nodeSchema>

const root: Node = nodeSchema.parse(z.toJSONSchema(configSchema, { io: 'input' }))

/** Every option, in the order of the schema. */
export const listConfigOptions = (): readonly ConfigOption[] => optionsUnder(root, [])

/** What the schema says at a path, whose parts within lists are numbers; undefined: nothing. */
export const schemaAt = (path: readonly string[]): Node | undefined =>
  path.reduce<Node | undefined>((node, name) => {
    const { properties = {}, items } = node ?? {}
    return Object.hasOwn(properties, name) ? properties[name] : items
  }, root)

/** Whether messages may quote the value: it is neither a secret nor a group that may hold one. */
export const isQuotable = (node: Node): boolean =>
  node.type !== 'object' && !isListOfObjects(node) && node.secret === undefined

/** Type and limits, for a sentence. */
export const allowedBy = (node: Node): string => {
  if (node.type === 'object') return 'a group of options'
  const range = `${node.enum || node.type === 'boolean' ? 'one of' : 'a'} ${plain(rangeOf(node))}`
  if (node.unit === undefined) return range
  return `${range}: a whole number of ${node.unit}, or one with a unit (${unitsOf(node.unit).join(', ')})`
}

/** The options with texts such as `90s` and `256MiB` as numbers. Other texts are kept for the schema to refuse. */
export const readUnits = (value: unknown, path: readonly string[] = []): unknown => {
  if (Array.isArray(value)) return value.map((item, index) => readUnits(item, [...path, `${index}`]))
  if (isTree(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, readUnits(member, [...path, name])]))
  const unit = typeof value === 'string' ? schemaAt(path)?.unit : undefined
  return unit === undefined ? value : (parseQuantity(String(value), unit) ?? value)
}

/** The variables that set the option, or the list that it is in. */
export const variablesOf = (path: readonly string[]): readonly string[] =>
  listConfigOptions()
    .filter((option) => option.path.every((name, index) => path[index] === name))
    .flatMap(namesOf)

const plain = (text: string): string => text.replaceAll('`', '')

const optionsUnder = (node: Node, path: readonly string[]): readonly ConfigOption[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, child]) =>
    child.type === 'object' ? optionsUnder(child, [...path, name]) : [toOption(child, [...path, name])],
  )

const toOption = (node: Node, path: readonly string[]): ConfigOption => ({
  path,
  type: isListOfObjects(node) ? 'list of objects' : node.type,
  envName: envNameOf(path),
  plainEnvName: node.plainEnv,
  range: rangeOf(node),
  defaultText: node.defaultText ?? (node.default === undefined ? undefined : `\`${JSON.stringify(node.default)}\``),
  description: node.description ?? '',
})

const isListOfObjects = ({ items }: Node): boolean => items?.type === 'object'

const envNameOf = (path: readonly string[]): string =>
  ['CTX', ...path.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`))].join('_').toUpperCase()

const rangeOf = (node: Node): string => {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${value}\``).join(', ')
  if (isListOfObjects(node)) return 'list of objects; in the variable as JSON'
  if (node.type === 'array') return 'list of strings'
  if (node.type === 'string')
    return node.minLength !== undefined && node.minLength > 1
      ? `string of ${node.minLength} characters or more`
      : 'string'
  if (node.type === 'boolean') return '`true`, `false`'
  if (node.unit !== undefined)
    return `${node.unit === 'bytes' ? 'size' : 'duration'}, ${node.minimum} to ${node.maximum} ${node.unit}`
  return `${node.type === 'integer' ? 'whole number' : 'number'}, ${node.minimum} to ${node.maximum}`
}

/** The environment variables that set an option. */
export const namesOf = ({ envName, plainEnvName }: ConfigOption): readonly string[] =>
  plainEnvName === undefined ? [envName] : [envName, plainEnvName]
