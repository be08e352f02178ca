import { describe, expect, test } from '@jest/globals'
import { type Block, blocksOf, documents } from './blocks.ts'
import { openTerminal } from './terminal.ts'

/** Languages of blocks that nobody pastes into a terminal. */
const quoted = ['json', 'lua', 'mermaid', 'redis', 'text', 'toml', 'yaml']
const pasted = ['console', 'shell']

/** The first line of a block that a test cannot run: what it needs, for the reader too. */
const mark = /^# needs (vLLM|engines of your own|Kubernetes|minutes(; make test runs it too|, and all of the machine))/

/** A program is complete with its imports; other code is quoted. */
const isProgram = ({ language, text }: Block): boolean =>
  (language === 'js' || language === 'ts' || language === 'python') && /^(import|from) /.test(text)
const isRun = (block: Block): boolean => isProgram(block) || (pasted.includes(block.language) && !mark.test(block.text))

describe('blocks of code in the documentation', () => {
  test('are commands that this test runs, or say what they need, or are no commands', () => {
    const open = documents
      .flatMap(blocksOf)
      .filter((block) => !isRun(block) && !mark.test(block.text) && ![...quoted, 'js', 'ts'].includes(block.language))
    expect(open.map(({ place, language }) => `${place} (${language})`)).toEqual([])
  })

  test('set up clients in README as in docs/clients.md', () => {
    const settings = (document: string) =>
      blocksOf(document).flatMap(({ text }) => (/^(model = |\{|export ANTHROPIC)/.test(text) ? [text] : []))
    expect(settings('README.md')).toHaveLength(3)
    expect(settings('docs/clients.md')).toEqual(settings('README.md'))
  })

  test.each(documents.filter((document) => blocksOf(document).some(isRun)))(
    'of %s can be pasted, and print what it shows',
    async (document) => {
      const terminal = await openTerminal()
      try {
        for (const block of blocksOf(document).filter(isRun)) await terminal.paste(block)
      } finally {
        await terminal.close()
      }
    },
  )
})
