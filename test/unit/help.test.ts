import { describe, expect, test } from '@jest/globals'
import { optionGroups } from '../../src/config/option-help.ts'
import { findHelpPage } from '../../src/help.ts'

describe('findHelpPage', () => {
  test.each([undefined, 'help', 'serve', 'run', 'vllm-up', 'replay', ...optionGroups])(
    '%s has a page of less than 60 lines of 120 characters',
    (name) => {
      const found = findHelpPage(name)
      const text = found.kind === 'page' ? found.text : found.message
      expect(text).toMatch(/^(Usage|Options of serve)/)
      const lines = text.split('\n').map((line) => Math.max(1, Math.ceil(line.length / 120)))
      expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThan(60)
    },
  )

  test.each([
    ['sevre', 'There is no command sevre. Did you mean serve?'],
    ['Responsecahe', 'There is no command Responsecahe. Did you mean responseCache?'],
    ['rn', 'There is no command rn. Did you mean run?'],
    ['wholly-unlike', 'There is no command wholly-unlike.'],
  ])('%s has no page', (name, message) => {
    expect(findHelpPage(name)).toEqual({ kind: 'unknown', message })
  })
})
