import type { z } from 'zod'
import { nearestName } from '../commandline/nearest-name.ts'
import type { ConfigProblem } from './config-problem.ts'
import { type Tree, valueAt } from './config-tree.ts'
import { allowedBy, isQuotable, schemaAt, variablesOf } from './options.ts'

/** What zod found, in the words of the schema: what is allowed, and the nearest name. */
export const problemsOfIssue = (issue: z.core.$ZodIssue, tree: Tree): readonly ConfigProblem[] => {
  const path = issue.path.map(String)
  const node = schemaAt(path)
  switch (issue.code) {
    case 'unrecognized_keys': {
      const names = Object.keys(node?.properties ?? {})
      return issue.keys.map((key) => ({ path: [...path, key], message: `no such option${hint(key, names)}` }))
    }
    case 'custom':
    case 'invalid_format':
      return [{ path, message: issue.message }]
    default: {
      const value = valueAt(tree, path)
      // zod measures a list where a text belongs, though its type was a problem before, and the other way round.
      const isMeasured = issue.code === 'too_small' || issue.code === 'too_big'
      if (isMeasured && Array.isArray(value) !== (node?.type === 'array')) return []
      const allowed = node === undefined ? issue.message : allowedBy(node)
      return [{ path, message: `must be ${value === undefined ? 'set: ' : ''}${allowed}${hint(value, node?.enum)}` }]
    }
  }
}

/** What a misspelt name was most likely meant to be. */
export const hint = (typed: unknown, names: readonly string[] = []): string => {
  const nearest = typeof typed === 'string' ? nearestName(typed, names) : undefined
  return nearest === undefined ? '' : `; did you mean ${nearest}?`
}

/**
 * One line: the option's place, name, variable, value unless it may be a secret, and what is wrong. `variableOf`: the
 * variable that sets it, or a list it is in; `placeInFile`: `file:line` of it, or of a group it would be in.
 */
export const describeProblem = (
  { path, against = [], message }: ConfigProblem,
  sources: {
    readonly tree: Tree
    readonly variableOf: (path: readonly string[]) => string | undefined
    readonly placeInFile: (path: readonly string[]) => string | undefined
  },
): string => {
  if (path.length === 0) return message
  const at = [path, ...against].find((candidate) => valueAt(sources.tree, candidate) !== undefined) ?? path
  const [variable, node, value] = [sources.variableOf(at), schemaAt(at), valueAt(sources.tree, at)]
  const place = variable ?? sources.placeInFile(at)
  const others = variable === undefined ? variablesOf(at).join(' or ') : ''
  return [
    place === undefined ? '' : `${place}: `,
    at.join('.'),
    others === '' ? '' : ` (${others})`,
    value !== undefined && node !== undefined && isQuotable(node) ? ` = ${quoted(value)}` : '',
    `: ${message}`,
  ].join('')
}

const maxQuotedCharacters = 100

/** Without the credentials of a URL, also where none belong. */
const quoted = (value: unknown): string => {
  const text = JSON.stringify(value).replaceAll(/\/\/\S*@/g, '//…@')
  return text.length > maxQuotedCharacters ? `${text.slice(0, maxQuotedCharacters)}…` : text
}
