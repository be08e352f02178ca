import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { loadStateFile, saveStateFile } from '../../../../../playground/engine/slots/state-file.ts'
import { createScriptedSequence } from './scripted-sequence.ts'

const fingerprint = Buffer.alloc(32, 7)
const saltHash = 'ab'.repeat(32)

describe('a slot file', () => {
  let folder = ''
  let path = ''
  let unfinishedPath = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'state-file-'))
    path = join(folder, 'a.bin')
    unfinishedPath = join(folder, '.part')
  })
  afterEach(() => rm(folder, { recursive: true }))

  const filled = async (tokens: readonly number[]) => {
    const sequence = createScriptedSequence()
    await sequence.append(tokens)
    return sequence
  }
  const save = async (tokens: readonly number[]) =>
    await saveStateFile(await filled(tokens), { path, unfinishedPath, fingerprint, saltHash })

  test('brings back what was saved', async () => {
    const bytes = await save([1, 2, 3])
    const target = await filled([9])
    const outcome = await loadStateFile(target, { path, fingerprint, maxTokens: 3 })
    expect(outcome).toEqual({ kind: 'loaded', bytes, description: { tokenCount: 3, fingerprint, saltHash } })
    expect(target.tokens()).toEqual([1, 2, 3])
    expect((await readFile(path)).length).toBe(bytes)
    expect(await readdir(folder)).toEqual(['a.bin'])
  })

  test('replaces the one before', async () => {
    await save([1, 2, 3])
    await save([4])
    const target = createScriptedSequence()
    await loadStateFile(target, { path, fingerprint, maxTokens: 3 })
    expect(target.tokens()).toEqual([4])
  })

  test('is loaded as it was verified, also if another is renamed over it meanwhile', async () => {
    await save([1, 2, 3])
    const target = createScriptedSequence()
    const renaming = {
      ...target,
      async load(openPath: string) {
        await writeFile(join(folder, 'b.bin'), 'something else')
        await rename(join(folder, 'b.bin'), path)
        await target.load(openPath)
      },
    }
    const outcome = await loadStateFile(renaming, { path, fingerprint, maxTokens: 3 })
    expect([outcome.kind, target.tokens()]).toEqual(['loaded', [1, 2, 3]])
  })

  const damage = async (change: (bytes: Buffer) => Buffer) => writeFile(path, change(await readFile(path)))
  test.each([
    ['is missing', () => rm(path), 'no such file'],
    ['is empty', () => damage(() => Buffer.alloc(0)), 'not a slot file'],
    ['has lost its end', () => damage((bytes) => bytes.subarray(0, -1)), 'not a slot file'],
    [
      'has a flipped bit',
      () => damage((bytes) => Buffer.concat([Buffer.of((bytes[0] ?? 0) ^ 1), bytes.subarray(1)])),
      'checksum mismatch',
    ],
    ['is something else', () => damage(() => Buffer.alloc(500, 'x')), 'not a slot file'],
  ])('that %s is refused and changes nothing', async (_, spoil, reason) => {
    await save([1, 2, 3])
    await spoil()
    const target = await filled([9])
    expect(await loadStateFile(target, { path, fingerprint, maxTokens: 3 })).toEqual({ kind: 'refused', reason })
    expect(target.tokens()).toEqual([9])
  })

  test.each([
    ['of another model', { fingerprint: Buffer.alloc(32, 8), maxTokens: 3 }, 'the file is of another model'],
    ['too large for the slot', { fingerprint, maxTokens: 2 }, 'the slot is too small for it'],
  ])('%s is refused', async (_, fit, reason) => {
    await save([1, 2, 3])
    expect(await loadStateFile(createScriptedSequence(), { path, ...fit })).toEqual({ kind: 'refused', reason })
  })

  test('whose KV turns out otherwise leaves the slot empty', async () => {
    await save([1, 2, 3])
    const target = createScriptedSequence({ loadedCount: 2 })
    const outcome = await loadStateFile(target, { path, fingerprint, maxTokens: 3 })
    expect([outcome.kind, target.tokens()]).toEqual(['cleared', []])
  })

  test('that cannot take its name leaves nothing behind', async () => {
    await mkdir(path)
    await expect(save([1])).rejects.toThrow('EISDIR')
    expect(await readdir(folder)).toEqual(['a.bin'])
  })
})
