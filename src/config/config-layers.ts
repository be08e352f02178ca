import type { ConfigProblem } from './config-problem.ts'
import type { EnvironmentSetting } from './read-environment.ts'

/** A mapping as YAML gives it. */
export type Tree = Readonly<Record<string, unknown>>

export const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What stands at a path, if all above it are mappings. */
export const valueAt = (tree: unknown, path: readonly string[]): unknown => {
  let value = tree
  for (const name of path) value = isTree(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** A copy with `value` at the path. What is no mapping on the way there stays, for the schema to refuse. */
export const withValue = (tree: Tree, path: readonly string[], value: unknown): Tree => {
  const [name, ...rest] = path
  if (name === undefined) return tree
  if (rest.length === 0) return { ...tree, [name]: value }
  const below = Object.hasOwn(tree, name) ? (tree[name] ?? {}) : {}
  return isTree(below) ? { ...tree, [name]: withValue(below, rest, value) } : tree
}

/** The file's options, and over them those of the environment. */
export const overlayEnvironment = (file: Tree, settings: readonly EnvironmentSetting[]): Tree =>
  settings.reduce((tree, { path, value }) => withValue(tree, path, value), file)

/** Options that may stand in a file of their own: the option, and the one that names the file. */
const fileOptions = [
  { path: ['tenant', 'secret'], filePath: ['tenant', 'secretFile'] },
  { path: ['sessions', 'redisUrl'], filePath: ['sessions', 'redisUrlFile'] },
] as const

/**
 * Puts in what stands in files of its own; the white space around it does not belong to it. `readText` returns undefined when it cannot
 * read; the options that stay empty for that reason come back as `unread`.
 */
export const fillFromFiles = (
  tree: Tree,
  readText: (filePath: string) => string | undefined,
): {
  readonly tree: Tree
  readonly problems: readonly ConfigProblem[]
  readonly unread: readonly (readonly string[])[]
} => {
  const problems: ConfigProblem[] = []
  const unread: (readonly string[])[] = []
  let filled = tree
  for (const { path, filePath } of fileOptions) {
    const file = valueAt(tree, filePath)
    if (typeof file !== 'string') continue
    const text = readText(file)
    if (valueAt(tree, path) !== undefined) {
      problems.push({ message: `Give either this or ${path.join('.')}, not both`, path: filePath })
    } else if (text === undefined) {
      problems.push({ message: 'The file cannot be read', path: filePath })
      unread.push(path)
    } else {
      filled = withValue(filled, path, text.trim())
    }
  }
  return { tree: filled, problems, unread }
}
