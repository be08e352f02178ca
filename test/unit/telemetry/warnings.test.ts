import { beforeEach, expect, test } from '@jest/globals'
import { limitRepeats } from '../../../src/telemetry/limit-repeats.ts'
import { createWarnings, type Warnings } from '../../../src/telemetry/warnings.ts'

let nowMs: number
let logged: unknown[][]
let warnings: Warnings
const write = (...line: unknown[]) => void logged.push(line)

beforeEach(() => {
  nowMs = 0
  logged = []
  warnings = createWarnings({ warn: write, info: write }, () => nowMs)
})

test('a finding is logged once, and listed until it is cleared or its subject is gone', () => {
  for (const subject of ['a:1', 'a:1', 'b:1', 'c:1']) {
    warnings.raise('engine_unauthorized', subject, `${subject} refuses the key`)
  }
  expect(warnings.clear('engine_unauthorized', 'a:1')).toBe(true)
  expect(warnings.clear('engine_unauthorized', 'a:1')).toBe(false)
  warnings.forget('c:1')
  expect(warnings.list()).toEqual([
    { kind: 'engine_unauthorized', subject: 'b:1', text: 'b:1 refuses the key', sinceSeconds: 0 },
  ])
  expect(logged.map(([message]) => message)).toEqual([
    ...['a:1', 'b:1', 'c:1'].map((subject) => `${subject} refuses the key`),
    'a warning is settled',
  ])
})

test('an outage has a warning with its causes when it begins, one a minute, and one line when it ends', () => {
  const refused = new Error('cannot be reached', { cause: new Error('connect to redis://u:secret@h refused') })
  const [kind, text] = ['store_unavailable', 'The session store is unavailable: cannot be reached'] as const
  for (; nowMs < 90_000; nowMs += 1_000) warnings.raiseOutage(kind, 'sessions', refused)
  warnings.clear(kind, 'sessions')
  warnings.raiseOutage(kind, 'sessions', 'silence')
  expect(logged).toEqual([
    [`${text}: connect to redis://[redacted]@h refused`, { kind }],
    [`${text}: connect to redis://[redacted]@h refused`, { kind, times: 60 }],
    ['The session store is available again', { kind, subject: 'sessions', afterSeconds: 90 }],
    ['The session store is unavailable: silence', { kind }],
  ])
})

test('of equal warnings of turns one a minute is written, with how many there were', () => {
  const log = { debug: write, info: write, warn: write, error: write, fatal: write }
  const limited = limitRepeats(log, () => nowMs)
  const err = new Error('disk full')
  for (; nowMs < 61_000; nowMs += 1_000) {
    limited.warn('KV could not be stored', { reason: 'offload_failed', err })
    if (nowMs === 1_000) limited.warn('KV could not be stored', { reason: 'too_large' })
  }
  limited.info('said as often as it happens')
  limited.info('said as often as it happens')
  expect(logged).toEqual([
    ['KV could not be stored', { reason: 'offload_failed', err }],
    ['KV could not be stored', { reason: 'too_large' }],
    ['KV could not be stored', { reason: 'offload_failed', err, times: 60 }],
    ['said as often as it happens'],
    ['said as often as it happens'],
  ])
})
