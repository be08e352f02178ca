import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { parseTraceLine, ReplayError, readTrace } from '../../../../playground/replay/trace.ts'
import { useFolder } from '../../../support/use-folder.ts'

const line = (change: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ timestamp: 5, input_length: 600, output_length: 7, hash_ids: [0, 9], ...change })

describe('a line of a trace', () => {
  test('is read as a request', () => {
    expect(parseTraceLine(line(), 1)).toEqual({ timestampMs: 5, inputTokens: 600, outputTokens: 7, blocks: [0, 9] })
  })

  test('may name its conversation, and the pause before it', () => {
    const named = parseTraceLine(line({ conversation: 'a', pause: 2.5 }), 1)
    expect(named).toMatchObject({ conversation: 'a', pauseMs: 2.5 })
  })

  test('may have further members', () => {
    expect(parseTraceLine(line({ type: 'text' }), 1).blocks).toEqual([0, 9])
  })

  const blocks = (count: number) => `"hash_ids" has ${count} blocks, and "input_length" 600 makes 2`
  test.each([
    { name: 'no JSON', text: '{"timestamp": 5', what: 'expected object' },
    { name: 'no time', text: line({ timestamp: undefined }), what: 'timestamp' },
    { name: 'a time before the start', text: line({ timestamp: -1 }), what: 'timestamp' },
    { name: 'an empty prompt', text: line({ input_length: 0 }), what: 'input_length' },
    { name: 'a broken length', text: line({ output_length: 1.5 }), what: 'output_length' },
    { name: 'a pause before the answer', text: line({ pause: -1 }), what: 'pause' },
    { name: 'a block that is no number', text: line({ hash_ids: [0, 'x'] }), what: 'hash_ids[1]' },
    { name: 'too few blocks', text: line({ hash_ids: [0] }), what: blocks(1) },
    { name: 'too many blocks', text: line({ hash_ids: [0, 1, 2] }), what: blocks(3) },
  ])('is refused with its number: $name', ({ text, what }) => {
    expect(() => parseTraceLine(text, 3)).toThrow(ReplayError)
    expect(() => parseTraceLine(text, 3)).toThrow(/^line 3: /)
    expect(() => parseTraceLine(text, 3)).toThrow(what)
  })
})

const folder = useFolder()

const lineAt = (timestamp: number): string => line({ timestamp, input_length: 1, hash_ids: [timestamp] })

const written = async (content: string | Uint8Array): Promise<string> => {
  const path = join(folder(), 'trace')
  await writeFile(path, content)
  return path
}

describe('reading a trace', () => {
  const text = `${lineAt(0)}\n\n${lineAt(0)}\r\n${lineAt(7)}`
  test.each([
    { name: 'as it is', content: text },
    { name: 'gzipped', content: gzipSync(text) },
    {
      name: 'gzipped in two pieces',
      content: Buffer.concat([gzipSync(`${lineAt(0)}\n${lineAt(0)}\n`), gzipSync(lineAt(7))]),
    },
  ])('gives its requests, $name', async ({ content }) => {
    expect((await readTrace(await written(content))).map(({ timestampMs }) => timestampMs)).toEqual([0, 0, 7])
  })

  test.each([
    {
      name: 'a bad line',
      content: `${lineAt(0)}\n\n{"timestamp":1}\n`,
      message: /^line 3: .*input_length/s,
    },
    {
      name: 'a line that goes back in time',
      content: `${lineAt(9)}\n${lineAt(8)}`,
      message: /^line 2: "timestamp" 8 is before 9, /,
    },
    { name: 'no requests', content: '\n\n', message: /has no requests$/ },
    { name: 'nothing', content: '', message: /has no requests$/ },
    {
      name: 'a file that was cut off',
      content: gzipSync(text).subarray(0, 40),
      message: /cannot be read: unexpected end of file$/,
    },
  ])('refuses $name', async ({ content, message }) => {
    const path = await written(content)
    await expect(readTrace(path)).rejects.toMatchObject({
      name: 'ReplayError',
      message: expect.stringMatching(message),
    })
  })

  test.each([
    { name: 'a file that is not there', path: 'none', message: /none cannot be read: ENOENT/ },
    { name: 'a folder', path: '.', message: /cannot be read: EISDIR/ },
  ])('refuses $name', async ({ path, message }) => {
    await expect(readTrace(join(folder(), path))).rejects.toMatchObject({
      name: 'ReplayError',
      message: expect.stringMatching(message),
    })
  })
})
