import { describe, expect, test } from '@jest/globals'
import type { LevelWithSilent } from 'pino'
import { createLogger } from '../../../src/telemetry/logger.ts'

const createCaptured = (level: LevelWithSilent) => {
  const lines: string[] = []
  const log = createLogger({ level, destination: { write: (line) => void lines.push(line) } })
  return { log, entries: () => lines.map((line): unknown => JSON.parse(line)), text: () => lines.join('') }
}

describe('createLogger', () => {
  test('writes one JSON object per line', () => {
    const { log, text, entries } = createCaptured('info')
    log.info('ready', { port: 8000 })
    log.warn('slow')
    expect(text().split('\n')).toHaveLength(3)
    expect(entries()).toEqual([
      { level: 'info', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/), port: 8000, msg: 'ready' },
      { level: 'warn', time: expect.any(String), msg: 'slow' },
    ])
  })

  test('what is below its level is not written', () => {
    const { log, entries } = createCaptured('info')
    log.debug('x')
    log.info('x')
    log.warn('x')
    log.error('x')
    log.fatal('x')
    expect(entries()).toMatchObject([{ level: 'info' }, { level: 'warn' }, { level: 'error' }, { level: 'fatal' }])
  })

  test('fields, messages and errors are redacted', () => {
    const { log, text } = createCaptured('debug')
    const secret = `ctx_${'s'.repeat(32)}`
    log.info(`session ${secret}`, { headers: { 'X-Session-Id': secret, Authorization: 'Bearer hidden-key' } })
    log.warn('x', { prompt: 'hidden words', request: { messages: [{ content: 'hidden words' }] } })
    log.error('x', { err: new Error(`GET /v1/context/${secret} with Bearer hidden-key`) })
    expect(text().split('\n')).toHaveLength(4)
    expect(text()).not.toContain(secret)
    expect(text()).not.toContain('hidden')
  })

  test('a line whose fields cannot be read is written without them', () => {
    const { log, entries } = createCaptured('info')
    const unreadable = {
      get field(): string {
        throw new Error('no')
      },
    }
    log.info('x', { unreadable })
    expect(entries()).toEqual([expect.objectContaining({ msg: 'x', fields: 'unreadable' })])
  })
})
