import { createHash, Hash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { ArtefactStore } from '../../../../src/kvcache/artefact-store/artefact-store.ts'
import { fileOf, partOf } from '../../../../src/kvcache/llamacpp-slots/artefact.ts'
import { type ArtefactFiles, createArtefactFiles } from '../../../../src/kvcache/llamacpp-slots/artefact-files.ts'

let directory: string
let files: ArtefactFiles
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'artefacts-'))
  files = createArtefactFiles(directory)
})
afterEach(async () => {
  await files.close()
  await rm(directory, { recursive: true, force: true })
})

const never = new AbortController().signal
const file = fileOf('ab'.repeat(20))
const text = 'key and value '.repeat(200_000)
const sha256 = createHash('sha256').update(text).digest('hex')
const artefact = { file, fingerprint: 'f', content: { bytes: text.length, sha256 } }
/** What an engine may load, or why it may not. */
const open = async () => {
  const opened = await files.open(artefact, never)
  return typeof opened === 'string' ? opened : 'intact'
}
const write = (name: string, content: string) => writeFile(join(directory, name), content)

describe('open', () => {
  test.each([
    ['intact', text],
    ['damaged', text.replace('value', 'VALUE')],
    ['damaged', text.slice(1)],
    ['damaged', `${text} `],
    ['damaged', ''],
  ])('a file is %s (row %#)', async (expected, content) => {
    await write(file, content)
    expect(await open()).toBe(expected)
  })

  test('an absent file and one never published are missing', async () => {
    expect(await open()).toBe('missing')
    await write(file, text)
    expect(await files.open({ ...artefact, content: undefined }, never)).toBe('missing')
  })

  test('a file that changed since it was intact is damaged', async () => {
    await write(file, text)
    expect(await open()).toBe('intact')
    await write(file, text.replace('value', 'VALUE'))
    expect(await open()).toBe('damaged')
  })

  test('a file of any size is hashed in pieces of at most 256 KiB, with other work between two of them', async () => {
    const bytes = 16 * 2 ** 20
    await write(file, '')
    await truncate(join(directory, file), bytes)
    let turns = 0
    let turning = setImmediate(function turn() {
      turns += 1
      turning = setImmediate(turn)
    })
    const pieces: { readonly bytes: number; readonly turn: number }[] = []
    const update = jest.spyOn(Hash.prototype, 'update').mockImplementation(function (this: Hash, piece) {
      pieces.push({ bytes: piece.length, turn: turns })
      return this
    })
    expect(await files.open({ ...artefact, content: { bytes, sha256 } }, never)).toBe('damaged')
    update.mockRestore()
    clearImmediate(turning)
    expect(pieces.reduce((sum, piece) => sum + piece.bytes, 0)).toBe(bytes)
    expect(Math.max(...pieces.map((piece) => piece.bytes))).toBeLessThanOrEqual(256 * 1024)
    expect(new Set(pieces.map(({ turn }) => turn)).size).toBe(pieces.length)
  })

  test('rejects after an abort', async () => {
    await write(file, text)
    await expect(files.open(artefact, AbortSignal.abort())).rejects.toThrow()
  })

  test('rejects when the folder cannot be read', async () => {
    await mkdir(join(directory, file))
    const bytes = Number((await import('node:fs')).statSync(join(directory, file)).size)
    await expect(files.open({ ...artefact, content: { bytes, sha256 } }, never)).rejects.toThrow('EISDIR')
  })
})

describe('keep', () => {
  const keep = (bytes: number) => files.keep(file, { bytes, signal: never })

  test('renames a complete file', async () => {
    await write(partOf(file), text)
    expect(await keep(text.length)).toBe(sha256)
    expect(await readdir(directory)).toEqual([file])
    expect(await open()).toBe('intact')
  })

  test('is undefined without a file, and keeps one of another length under its part name', async () => {
    expect(await keep(1)).toBeUndefined()
    await write(partOf(file), text)
    expect(await keep(text.length + 1)).toBeUndefined()
    expect(await readdir(directory)).toEqual([partOf(file)])
  })

  test.each([0, 1])('reads no more of a file of which a store refused the rest after %d pieces', async (pieces) => {
    let rest: AsyncIterator<Uint8Array> | undefined
    const save: ArtefactStore['save'] = async (_name, content) => {
      rest = content[Symbol.asyncIterator]()
      for (let piece = 0; piece < pieces; piece += 1) await rest.next()
      throw new Error('full')
    }
    await write(partOf(file), text)
    const kept = createArtefactFiles(directory, { save, load: async () => undefined, remove: async () => {} })
    await expect(kept.keep(file, { bytes: text.length, signal: never })).rejects.toThrow('full')
    expect(await rest?.next()).toEqual({ done: true, value: undefined })
  })
})

test('remove deletes an artefact and its part, and can be repeated', async () => {
  await write(file, text)
  await write(partOf(file), text)
  await files.remove(file, never)
  await files.remove(file, never)
  expect(await readdir(directory)).toEqual([])
})

test('next lists files of the folder with their ages, and begins anew behind the last one', async () => {
  await write('old', '')
  await write('young', '')
  await mkdir(join(directory, 'folder'))
  const hourAgo = new Date(Date.now() - 3_600_000)
  await utimes(join(directory, 'old'), hourAgo, hourAgo)
  for (let round = 0; round < 2; round += 1) {
    const seen = await files.next()
    const isOld = seen.map(({ file: name, ageMs }) => [name, ageMs >= 3_600_000])
    expect(Object.fromEntries(isOld)).toEqual({ old: true, young: false })
  }
})
