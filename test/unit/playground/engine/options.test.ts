import { describe, expect, test } from '@jest/globals'
import { parseOptions } from '../../../../playground/engine/options.ts'

describe('the command line', () => {
  test('has defaults for everything', () => {
    expect(parseOptions([])).toMatchObject({
      kind: 'run',
      options: {
        host: '127.0.0.1',
        port: 0,
        kvFolder: undefined,
        modelPath: undefined,
        modelNames: ['tiny-random'],
        slots: 4,
        contextTokens: 8192,
        threads: 1,
        alwaysSendUsage: false,
        exitWithParent: false,
      },
    })
  })

  test.each([
    [
      'numbers',
      ['--port', '8001', '--slots=2', '--context-tokens', '1024'],
      { port: 8001, slots: 2, contextTokens: 1024 },
    ],
    ['the name of a file', ['--model', '/models/qwen.gguf'], { modelPath: '/models/qwen.gguf', modelNames: ['qwen'] }],
    ['names', ['--model-name', 'a', '--model-name', 'b', '--model-name', 'a'], { modelNames: ['a', 'b'] }],
    ['switches', ['--always-usage', '--exit-with-parent'], { alwaysSendUsage: true, exitWithParent: true }],
    ['a folder', ['--kv-dir', '/kv'], { kvFolder: '/kv' }],
  ])('takes %s', (_, args, expected) => {
    expect(parseOptions(args)).toMatchObject({ kind: 'run', options: expected })
  })

  test.each([
    ['an unknown flag', ['--speed', '9'], '--speed'],
    ['a word without flag', ['8001'], '8001'],
    ['a number that is none', ['--port', '80a'], '--port must be a whole number'],
    ['a number out of range', ['--port', '65536'], 'from 0 to 65535'],
    ['no slot', ['--slots', '0'], '--slots'],
    ['an unknown level', ['--log-level', 'loud'], '--log-level'],
  ])('refuses %s', (_, args, message) => {
    expect(parseOptions(args)).toMatchObject({ kind: 'invalid', message: expect.stringContaining(message) })
  })

  test('explains every flag', () => {
    expect(parseOptions(['--help'])).toMatchObject({
      kind: 'help',
      text: expect.stringContaining('--exit-with-parent'),
    })
  })
})
