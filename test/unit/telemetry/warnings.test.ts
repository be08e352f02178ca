import { expect, test } from '@jest/globals'
import { createWarnings } from '../../../src/telemetry/warnings.ts'

test('a finding is logged once, and listed until it is cleared', () => {
  const logged: string[] = []
  const record = (message: string) => void logged.push(message)
  const warnings = createWarnings({ warn: record, info: record })
  warnings.raise('engine_unauthorized', 'a:1', 'a:1 refuses the key')
  warnings.raise('engine_unauthorized', 'a:1', 'a:1 refuses the key')
  warnings.raise('engine_unauthorized', 'b:1', 'b:1 refuses the key')
  warnings.clear('engine_unauthorized', 'a:1')
  warnings.clear('engine_unauthorized', 'a:1')
  expect(warnings.list()).toEqual([{ kind: 'engine_unauthorized', text: 'b:1 refuses the key' }])
  expect(logged).toEqual(['a:1 refuses the key', 'b:1 refuses the key', 'a warning is settled'])
})
