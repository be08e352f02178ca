import { readFileSync } from 'node:fs'
import { types } from 'node:util'
import { type Document, isMap, isNode, LineCounter, parseDocument } from 'yaml'
import { isTree, type Tree } from './config-tree.ts'

export interface ConfigFile {
  /** Why the file cannot be used; its tree is empty then. */
  readonly problem?: string
  readonly tree: Tree
  /** `file:line` of the option, or of the last part of its path in the file; undefined: the file has none of it. */
  readonly placeOf: (path: readonly string[]) => string | undefined
}

export const noConfigFile: ConfigFile = { tree: {}, placeOf: () => undefined }

/** Reads a YAML file of options. A name without a value counts as unset. */
export const readConfigFile = (filePath: string): ConfigFile => {
  const content = readText(filePath)
  if ('problem' in content) return { ...noConfigFile, problem: `${filePath}: ${content.problem}` }
  const lineCounter = new LineCounter()
  const document = parseDocument(content.text, { lineCounter })
  const placeAt = (offset: number): string => `${filePath}:${lineCounter.linePos(offset).line}`
  const [error] = document.errors
  if (error !== undefined) {
    // Only the kind of error: its message quotes the file, which may hold a secret.
    const kind = error.code.toLowerCase().replaceAll('_', ' ')
    return { ...noConfigFile, problem: `${placeAt(error.pos[0])}: no valid YAML: ${kind}` }
  }
  const tree = optionsIn(document)
  if (!isTree(tree)) return { ...noConfigFile, problem: `${filePath}: must hold a mapping of options` }
  const placeOf: ConfigFile['placeOf'] = (path) => {
    const name = path.at(-1)
    if (name === undefined) return undefined
    const above = path.slice(0, -1)
    const parent = document.getIn(above, true)
    const node = isMap(parent) ? parent.items.find(({ key }) => String(key) === name)?.key : document.getIn(path, true)
    return isNode(node) && node.range ? placeAt(node.range[0]) : placeOf(above)
  }
  return { tree, placeOf }
}

/** Undefined: an alias has no anchor, or there are too many aliases. */
const optionsIn = (document: Document): unknown => {
  try {
    return document.toJS({ reviver: (_name, value: unknown) => value ?? undefined }) ?? {}
  } catch {
    return undefined
  }
}

/** A text file, or why it cannot be read: the error's code and its meaning. */
export const readText = (filePath: string): { readonly text: string } | { readonly problem: string } => {
  try {
    return { text: readFileSync(filePath, 'utf8') }
  } catch (error) {
    const [reason] = (types.isNativeError(error) ? error.message : String(error)).split(', ')
    return { problem: `cannot be read (${reason})` }
  }
}
