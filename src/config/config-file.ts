import { readFileSync } from 'node:fs'
import { types } from 'node:util'
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { isTree, type Tree } from './config-tree.ts'

export interface ConfigFile {
  /** Why the file cannot be used; its tree is empty then. */
  readonly problem?: string
  readonly tree: Tree
  /** `file:line` of the option, or of the last part of its path that the file has; undefined: the file has none of it. */
  readonly placeOf: (path: readonly string[]) => string | undefined
}

export const noConfigFile: ConfigFile = { tree: {}, placeOf: () => undefined }

/** Reads a YAML file of options. A name without a value counts as unset. */
export const readConfigFile = (filePath: string): ConfigFile => {
  const content = readText(filePath)
  if (content.kind === 'unreadable') return { ...noConfigFile, problem: `${filePath}: ${content.problem}` }
  const lineCounter = new LineCounter()
  const document = parseDocument(content.text, { lineCounter })
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line
  const [error] = document.errors
  if (error !== undefined) {
    // Only the kind of error: its message quotes the file, which may hold a secret.
    const kind = error.code.toLowerCase().replaceAll('_', ' ')
    return { ...noConfigFile, problem: `${filePath}:${lineAt(error.pos[0])}: no valid YAML: ${kind}` }
  }
  const tree = optionsIn(document)
  if (!isTree(tree)) return { ...noConfigFile, problem: `${filePath}: must hold a mapping of options` }
  return {
    tree,
    placeOf: (path) => {
      const offset = offsetOf(document, path)
      return offset === undefined ? undefined : `${filePath}:${lineAt(offset)}`
    },
  }
}

/** Undefined: an alias has no anchor, or there are too many aliases. */
const optionsIn = (document: Document): unknown => {
  try {
    return document.toJS({ reviver: (_name, value: unknown) => value ?? undefined }) ?? {}
  } catch {
    return undefined
  }
}

const offsetOf = (document: Document, path: readonly string[]): number | undefined => {
  let [node, offset]: [unknown, number | undefined] = [document.contents, undefined]
  for (const name of path) {
    const member = memberOf(isAlias(node) ? node.resolve(document) : node, name)
    if (member === undefined) break
    node = member.value
    offset = member.offset
  }
  return offset
}

/** A text file, or why it cannot be read: the error's code and its meaning. */
export const readText = (
  filePath: string,
): { readonly kind: 'read'; readonly text: string } | { readonly kind: 'unreadable'; readonly problem: string } => {
  try {
    return { kind: 'read', text: readFileSync(filePath, 'utf8') }
  } catch (error) {
    const [reason] = (types.isNativeError(error) ? error.message : String(error)).split(', ')
    return { kind: 'unreadable', problem: `cannot be read (${reason})` }
  }
}

/** A member of a mapping or list, and where it begins in the text. */
const memberOf = (
  node: unknown,
  name: string,
): { readonly offset: number | undefined; readonly value: unknown } | undefined => {
  if (isSeq(node)) {
    const item = node.items[Number(name)]
    return isNode(item) ? { offset: item.range?.[0], value: item } : undefined
  }
  const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && String(key.value) === name) : undefined
  return pair === undefined
    ? undefined
    : { offset: isNode(pair.key) ? pair.key.range?.[0] : undefined, value: pair.value }
}
