import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { InstallError, installOnce } from '../../../../playground/install/install-once.ts'
import { useFolder } from '../../../support/use-folder.ts'

describe('installOnce', () => {
  const parent = useFolder()

  test('moves a finished installation into place and leaves nothing else', async () => {
    const directory = join(parent(), 'deep', 'tool')
    await installOnce({ directory, install: (into) => writeFile(join(into, 'file'), 'text') })
    expect(await readFile(join(directory, 'file'), 'utf8')).toBe('text')
    expect(await readdir(join(parent(), 'deep'))).toEqual(['tool'])
  })

  test('a failed installation leaves nothing', async () => {
    const install = async (into: string): Promise<void> => {
      await writeFile(join(into, 'half'), '')
      throw new InstallError('no network')
    }
    await expect(installOnce({ directory: join(parent(), 'tool'), install })).rejects.toThrow('no network')
    expect(await readdir(parent())).toEqual([])
  })

  test('of several at once one stays, whole', async () => {
    const directory = join(parent(), 'tool')
    const install = (name: string) => async (into: string) => {
      for (const file of ['a', 'b', 'c']) await writeFile(join(into, file), name)
    }
    await Promise.all(['1', '2', '3', '4'].map((name) => installOnce({ directory, install: install(name) })))
    const contents = await Promise.all(['a', 'b', 'c'].map((file) => readFile(join(directory, file), 'utf8')))
    expect(new Set(contents).size).toBe(1)
    expect(await readdir(parent())).toEqual(['tool'])
  })

  test('an error of the move itself is not taken for another winner', async () => {
    const directory = join(parent(), 'tool')
    const install = (into: string): Promise<void> => rm(into, { recursive: true })
    await expect(installOnce({ directory, install })).rejects.toMatchObject({ code: 'ENOENT' })
    expect(existsSync(directory)).toBe(false)
  })
})
