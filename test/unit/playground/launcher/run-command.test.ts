import { describe, expect, test } from '@jest/globals'
import { lastLine, runCommand } from '../../../../playground/launcher/run-command.ts'

const sh = (script: string, options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {}) =>
  runCommand({ command: ['/bin/sh', '-c', script], env: { WORD: 'word' }, timeoutMs: 10_000, ...options })

describe('runCommand', () => {
  test('collects both streams of a program that succeeds', async () => {
    expect(await sh('echo "$WORD"; echo warning >&2')).toEqual({ ok: true, stdout: 'word\n', stderr: 'warning\n' })
  })

  test('passes no other environment than the one given', async () => {
    expect(await sh('echo "[$HOME]"')).toMatchObject({ ok: true, stdout: '[]\n' })
  })

  test.each([
    {
      name: 'its last error line',
      script: 'echo E: no such package >&2; echo done; exit 100',
      reason: 'E: no such package',
    },
    { name: 'its last line', script: 'echo first; echo second; exit 1', reason: 'second' },
    { name: 'its status when it says nothing', script: 'exit 7', reason: 'ended with status 7' },
    { name: 'the signal that ended it', script: 'kill -9 $$', reason: 'ended with SIGKILL' },
  ])('a failure is told by $name', async ({ script, reason }) => {
    expect(await sh(script)).toMatchObject({ ok: false, reason: `/bin/sh: ${reason}` })
  })

  test('a program that is not there', async () => {
    const outcome = await runCommand({ command: ['/none'], env: {}, timeoutMs: 1000 })
    expect(outcome).toMatchObject({ ok: false, reason: '/none: spawn /none ENOENT' })
  })

  test('a program that does not end is killed', async () => {
    expect(await sh('exec sleep 60', { timeoutMs: 50 })).toMatchObject({
      ok: false,
      reason: '/bin/sh: no end after 50 ms',
    })
  })

  test('a signal interrupts', async () => {
    expect(await sh('exec sleep 60', { signal: AbortSignal.abort() })).toMatchObject({
      ok: false,
      reason: '/bin/sh: interrupted',
    })
  })
})

describe('lastLine', () => {
  test.each([
    {
      name: 'an error line before others',
      text: 'ERROR: no match\nnotice: a new release\n\n',
      line: 'ERROR: no match',
    },
    { name: 'the last of several lines', text: ' one \n two \n', line: 'two' },
    { name: 'nothing', text: '\n \n', line: undefined },
  ])('$name', ({ text, line }) => {
    expect(lastLine(text)).toBe(line)
  })
})
