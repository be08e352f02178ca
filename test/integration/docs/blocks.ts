import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../../playground/paths.ts'

/** A fenced block of the documentation. */
export interface Block {
  /** `docs/vllm.md:7` */
  readonly place: string
  /** Behind the opening fence; may be empty. */
  readonly language: string
  readonly text: string
}

/** README.md and every Markdown file of the folders for readers, from the package's root. */
export const documents: readonly string[] = [
  'README.md',
  ...['docs', 'deploy'].flatMap((folder) =>
    readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md') && !file.includes('node_modules'))
      .map((file) => join(folder, file)),
  ),
]

export const blocksOf = (document: string): readonly Block[] => {
  const text = readFileSync(join(packageRoot(), document), 'utf8')
  return [...text.matchAll(/^( *)```(.*)\n([\s\S]*?)^ *```$/gm)].map((match) => {
    const [, indent = '', language = '', content = ''] = match
    return {
      place: `${document}:${text.slice(0, match.index).split('\n').length}`,
      language: language.trim(),
      text: content.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }
  })
}

/** A command and the lines that the document shows of its output. */
export interface Command {
  readonly text: string
  readonly shown: readonly string[]
}

/**
 * The commands of a block: in `console`, each one behind `$ ` with the output below it; in `shell`, all of them, with
 * the output as comments at the end.
 */
export const commandsOf = ({ language, text }: Block): readonly Command[] => {
  const lines = text.trimEnd().split('\n')
  if (language !== 'console') {
    const end = lines.findLastIndex((line) => !line.startsWith('# ')) + 1
    return [{ text: lines.slice(0, end).join('\n'), shown: lines.slice(end).map((line) => line.slice(2)) }]
  }
  const starts = lines.flatMap((line, index) => (line.startsWith('$ ') ? [index] : []))
  return starts.map((start, index) => {
    const part = lines.slice(start, starts[index + 1])
    const end = part.findIndex((line) => !line.endsWith('\\')) + 1
    return { text: part.slice(0, end).join('\n').slice(2), shown: part.slice(end).filter((line) => line !== '') }
  })
}

/** What a program says that it prints: the comments behind `print(…)` and `console.log(…)`. */
export const printsOf = ({ text }: Block): readonly string[] =>
  [...text.matchAll(/^(?:print|console\.log)\(.*\) +(?:#|\/\/) (.*)$/gm)].map(([, shown = '']) => shown)
