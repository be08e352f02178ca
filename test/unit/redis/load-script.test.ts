import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { loadScript } from '../../../src/redis/load-script.ts'

describe('loading a script', () => {
  let folder: string
  let url: URL

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'scripts-'))
    url = pathToFileURL(`${folder}/`)
    await mkdir(join(folder, 'includes'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true, force: true })
  })

  const write = (files: Readonly<Record<string, string>>): Promise<unknown> =>
    Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)))

  test('returns the file unchanged', async () => {
    await write({ 'one.lua': 'return 1\n' })

    expect(loadScript(url, 'one')).toEqual({ name: 'one', source: 'return 1\n' })
  })

  test('inserts each include once, where it is first named', async () => {
    await write({
      'main.lua': '-- main\n--- @include first\n--- @include second\nreturn 1\n',
      'includes/first.lua': '--- @include base\nlocal first',
      'includes/second.lua': '--- @include base\nlocal second',
      'includes/base.lua': 'local base',
    })

    expect(
      loadScript(url, 'main')
        .source.split('\n')
        .filter((line) => line !== ''),
    ).toEqual(['-- main', 'local base', 'local first', 'local second', 'return 1'])
  })

  test('keeps replacement patterns in an include', async () => {
    await write({ 'main.lua': '--- @include part\n', 'includes/part.lua': "local dollar = '$&$1$$'" })

    expect(loadScript(url, 'main').source).toBe("local dollar = '$&$1$$'\n")
  })

  test.each([
    { name: 'script', files: {} },
    { name: 'part', files: { 'main.lua': '--- @include missing\n' } },
  ])('fails when a $name is missing', async ({ files }) => {
    await write(files)

    expect(() => loadScript(url, 'main')).toThrow('ENOENT')
  })
})
