import { describe, expect, test } from '@jest/globals'
import { operatorPages } from '../../src/commands/pages.ts'
import { optionGroups } from '../../src/config/option-help.ts'
import { findHelpPage } from '../../src/help.ts'

describe('findHelpPage', () => {
  test.each([undefined, 'help', 'serve', 'run', 'vllm-up', 'replay', ...Object.keys(operatorPages), ...optionGroups])(
    '%s has a page of less than 60 lines of 120 characters',
    (name) => {
      const { text } = findHelpPage(name)
      expect(text).toMatch(/^(Usage|Options of serve)/)
      const lines = text.split('\n').map((line) => Math.max(1, Math.ceil(line.length / 120)))
      expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThan(60)
    },
  )
})
