import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { nearestName } from '../../../src/config/nearest-name.ts'

const names = ['redisUrl', 'redisUrlFile', 'defaultTtlSeconds', 'sliding', 'store']

/** The name with one character lost, doubled, changed, or swapped with the next. */
const typo = (name: string, at: number, kind: number): string => {
  const [before, after] = [name.slice(0, at), name.slice(at + 1)]
  const mistakes = [
    after,
    `${name[at]}${name[at]}${after}`,
    `#${after}`,
    `${after.slice(0, 1)}${name[at]}${after.slice(1)}`,
  ]
  return before + mistakes[kind]
}

test('a name with one mistake is found', () => {
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.nat(4), fc.nat(3), (name, at, kind) => {
      expect(nearestName(typo(name, at, kind), names)).toBe(name)
    }),
  )
})

test.each([
  ['redisUrl', 'redisUrl'],
  ['REDIS_URL', 'redisUrl'],
  ['slidign', 'sliding'],
  ['stoor', undefined],
  ['maxSessions', undefined],
])('%s is meant to be %s', (typed, name) => {
  expect(nearestName(typed, names)).toBe(name)
})
