import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openStateFolder, unfinishedMaxAgeMs } from '../../../../../playground/engine/slots/state-folder.ts'

describe('the folder of slot files', () => {
  let root = ''
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'state-folder-'))
  })
  afterEach(() => rm(root, { recursive: true }))

  test('is made where it is missing', async () => {
    await openStateFolder(join(root, 'a', 'b'))
    expect(await readdir(join(root, 'a'))).toEqual(['b'])
  })

  test.each(['a', 'a.bin', 'ctx_-9.v2.kv', 'x'.repeat(200)])('holds %s', async (name) => {
    const folder = await openStateFolder(root)
    expect(folder.pathOf(name)).toBe(join(root, name))
  })

  test.each([
    ['nothing', ''],
    ['a separator', 'a/b'],
    ['a backslash', 'a\\b'],
    ['the parent', '..'],
    ['a way out', '../a'],
    ['an absolute path', '/etc/passwd'],
    ['a hidden file', '.a'],
    ['a dot at the end', 'a.'],
    ['two dots', 'a..b'],
    ['a space', 'a b'],
    ['a line break', 'a\n'],
    ['a zero', 'a\0'],
    ['too long a name', 'x'.repeat(201)],
  ])('refuses %s', async (_, name) => {
    const folder = await openStateFolder(root)
    expect(folder.pathOf(name)).toBeUndefined()
  })

  test('gives each unfinished file a name that no slot file can have', async () => {
    const folder = await openStateFolder(root)
    const [one, other] = [folder.unfinishedPath(), folder.unfinishedPath()]
    expect(one).not.toBe(other)
    expect(dirname(one)).toBe(root)
    expect(folder.pathOf(basename(one))).toBeUndefined()
  })

  test('sweeps abandoned unfinished files and nothing else', async () => {
    const folder = await openStateFolder(root)
    const nowMs = 1_000_000_000_000
    const aged = async (path: string, ageMs: number) => {
      await writeFile(path, '')
      await utimes(path, (nowMs - ageMs) / 1000, (nowMs - ageMs) / 1000)
      return basename(path)
    }
    await aged(folder.unfinishedPath(), unfinishedMaxAgeMs + 1000)
    const young = await aged(folder.unfinishedPath(), unfinishedMaxAgeMs - 1000)
    const finished = await aged(join(root, 'a.bin'), 10 * unfinishedMaxAgeMs)
    const foreign = await aged(join(root, '.hidden'), 10 * unfinishedMaxAgeMs)
    expect(await folder.sweep(nowMs)).toBe(1)
    expect((await readdir(root)).sort()).toEqual([young, finished, foreign].sort())
  })
})
