/** Options before they are checked: a YAML mapping. */
export type Tree = Readonly<Record<string, unknown>>

export const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value at a path, also in lists; undefined if there is none. */
export const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce((value, name) => {
    if (Array.isArray(value)) return (value as readonly unknown[])[Number(name)]
    return isTree(value) && Object.hasOwn(value, name) ? value[name] : undefined
  }, tree)

/** A copy with `value` at the path, also in lists. A part that is no mapping or list stays: the schema refuses it. */
export const withValue = (tree: Tree, path: readonly string[], value: unknown): Tree => {
  const replace = (node: unknown, [name, ...rest]: readonly string[]): unknown => {
    if (name === undefined) return value
    if (Array.isArray(node) && Number(name) in node) return node.with(Number(name), replace(node[Number(name)], rest))
    if (!isTree(node)) return node
    return { ...node, [name]: replace(Object.hasOwn(node, name) ? node[name] : {}, rest) }
  }
  return replace(tree, path) as Tree
}
