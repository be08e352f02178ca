import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { readTrace } from '../../../../playground/replay/read-trace.ts'
import type { TraceRequest } from '../../../../playground/replay/trace-request.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trace-'))
})
afterEach(() => rm(folder, { recursive: true }))

const line = (timestamp: number): string =>
  JSON.stringify({ timestamp, input_length: 1, output_length: 1, hash_ids: [timestamp] })

const written = async (content: string | Uint8Array): Promise<string> => {
  const path = join(folder, 'trace')
  await writeFile(path, content)
  return path
}

const readAll = async (path: string): Promise<readonly TraceRequest[]> => {
  const requests: TraceRequest[] = []
  for await (const request of readTrace(path)) requests.push(request)
  return requests
}

describe('reading a trace', () => {
  const text = `${line(0)}\n\n${line(0)}\r\n${line(7)}`
  test.each([
    { name: 'as it is', content: text },
    { name: 'gzipped', content: gzipSync(text) },
    {
      name: 'gzipped in two pieces',
      content: Buffer.concat([gzipSync(`${line(0)}\n${line(0)}\n`), gzipSync(line(7))]),
    },
  ])('gives its requests, $name', async ({ content }) => {
    expect((await readAll(await written(content))).map(({ timestampMs }) => timestampMs)).toEqual([0, 0, 7])
  })

  test('tells how far it is', async () => {
    const path = await written(gzipSync(Array.from({ length: 20_000 }, (_none, index) => line(index)).join('\n')))
    const shares: number[] = []
    let requests = 0
    for await (const _request of readTrace(path, { onRead: (share) => shares.push(share) })) requests += 1
    expect(requests).toBe(20_000)
    expect(shares.at(-1)).toBe(1)
    expect([...shares].sort((a, b) => a - b)).toEqual(shares)
  })

  test('can be left before its end', async () => {
    const path = await written(gzipSync(Array.from({ length: 20_000 }, (_none, index) => line(index)).join('\n')))
    const seen: number[] = []
    for await (const { timestampMs } of readTrace(path)) {
      seen.push(timestampMs)
      if (seen.length === 3) break
    }
    expect(seen).toEqual([0, 1, 2])
  })

  test.each([
    { name: 'a bad line', content: `${line(0)}\n\n{"timestamp":1}\n`, message: /^line 3: "input_length" is missing$/ },
    {
      name: 'a line that goes back in time',
      content: `${line(9)}\n${line(8)}`,
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
    await expect(readAll(path)).rejects.toMatchObject({ name: 'TraceError', message: expect.stringMatching(message) })
  })

  test.each([
    { name: 'a file that is not there', path: 'none', message: /none cannot be read: ENOENT/ },
    { name: 'a folder', path: '.', message: /cannot be read: EISDIR/ },
  ])('refuses $name', async ({ path, message }) => {
    await expect(readAll(join(folder, path))).rejects.toMatchObject({
      name: 'TraceError',
      message: expect.stringMatching(message),
    })
  })
})
