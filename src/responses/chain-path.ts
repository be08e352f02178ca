import { nanoid } from 'nanoid'

/**
 * Path of a chain in its tree. Nodes that follow each other without a fork are numbered within one branch, so that a path
 * has the length of its forks, not of its turns: `Xy3…:12,b-Q…:3` are 12 nodes of the first branch, then 3 of the
 * second. Branch names are random.
 */
export type ChainPath = readonly { readonly branch: string; readonly nodes: number }[]

/** Of a chain at most: a script touches each, which takes Redis some 13 µs. */
export const maxNodes = 1_024

const newBranch = (): string => nanoid(12)

export const writePath = (path: ChainPath): string => path.map(({ branch, nodes }) => `${branch}:${nodes}`).join(',')

export const readPath = (text: string): ChainPath =>
  text === ''
    ? []
    : text.split(',').map((part) => {
        const [branch = '', nodes = ''] = part.split(':')
        return { branch, nodes: Number(nodes) }
      })

/** Names of the nodes, from the root. */
export const nodesOf = (path: ChainPath): readonly string[] =>
  path.flatMap(({ branch, nodes }) => Array.from({ length: nodes }, (_, index) => `${branch}.${index + 1}`))

/** The path to the next node: on the same branch, or, as a fork, on one of its own. */
export const nextPath = (path: ChainPath, how: 'same-branch' | 'fork'): ChainPath => {
  const last = path.at(-1)
  return last === undefined || how === 'fork'
    ? [...path, { branch: newBranch(), nodes: 1 }]
    : [...path.slice(0, -1), { branch: last.branch, nodes: last.nodes + 1 }]
}
