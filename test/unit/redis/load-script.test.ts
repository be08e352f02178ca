import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { loadScript } from '../../../src/redis/load-script.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'scripts-'))
  mkdirSync(join(folder, 'includes'))
})

afterEach(() => rmSync(folder, { recursive: true }))

const load = (files: Readonly<Record<string, string>>) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return loadScript(pathToFileURL(`${folder}/`), 'main')
}

test('a script without parts is read unchanged', () => {
  expect(load({ 'main.lua': 'return 1\n' })).toMatchObject({ name: 'main', source: 'return 1\n' })
})

test('parts are included where they are named first, each once', () => {
  const { source } = load({
    'main.lua': '-- main\n--- @include first\n--- @include second\nreturn 1\n',
    'includes/first.lua': '--- @include base\nlocal first',
    'includes/second.lua': '--- @include base\nlocal second',
    // A replacement could misread these characters.
    'includes/base.lua': "local dollar = '$&$1$$'",
  })
  const lines = source.split('\n').filter((line) => line !== '')
  expect(lines).toEqual(['-- main', "local dollar = '$&$1$$'", 'local first', 'local second', 'return 1'])
})

test.each([
  ['script', {}],
  ['part', { 'main.lua': '--- @include missing\n' }],
])('loading fails when a %s is missing', (_name, files) => {
  expect(() => load(files)).toThrow('ENOENT')
})
