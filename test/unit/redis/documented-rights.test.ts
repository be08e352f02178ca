import { globSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { documentedRights } from '../../support/documented-rights.ts'

const root = new URL('../../../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8')

/** What the connection itself sends, the last five in a cluster alone. */
const ofClient = 'get set eval evalsha subscribe select cluster|slots client|setname asking readonly readwrite'.split(
  ' ',
)

test('docs/redis.md lists the commands that scripts and connection use, and no others', () => {
  const scripts = globSync('src/**/*.lua', { cwd: root }).map(read).join('\n')
  const words = (pattern: RegExp): readonly string[] =>
    [...new Set([...scripts.matchAll(pattern)].map(([, word = '']) => word.toLowerCase()))].sort()
  const listed = documentedRights()
    .filter((right) => right.startsWith('+'))
    .map((right) => right.slice(1))

  const called = words(/call\('([A-Z]+)'/g)
  expect(listed).toEqual(expect.arrayContaining([...called, ...ofClient]))
  // A script may choose among commands, by their names.
  const named = words(/'([A-Z]+)'/g)
  expect(listed.filter((command) => !named.includes(command) && !ofClient.includes(command))).toEqual([])
})
