import { describe, expect, test } from '@jest/globals'
import { formatVersion, isAtLeast, parseVersion, type Version } from '../../../../playground/launcher/version.ts'

describe('parseVersion', () => {
  test.each<{ name: string; text: string; version: Version | undefined }>([
    { name: 'three parts', text: '1.40.0', version: [1, 40, 0] },
    { name: 'two parts', text: 'v7.2', version: [7, 2, 0] },
    { name: 'the first of several', text: 'v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0', version: [7, 0, 15] },
    { name: 'a suffix', text: '1.41.0-dev', version: [1, 41, 0] },
    { name: 'a single number', text: 'build 11669', version: undefined },
    { name: 'no number', text: 'unknown', version: undefined },
    { name: 'nothing', text: '', version: undefined },
  ])('$name', ({ text, version }) => {
    expect(parseVersion(text)).toEqual(version)
  })
})

describe('isAtLeast', () => {
  test.each<{ name: string; version: Version; expected: boolean }>([
    { name: 'the same', version: [1, 40, 2], expected: true },
    { name: 'a newer patch', version: [1, 40, 3], expected: true },
    { name: 'an older patch', version: [1, 40, 1], expected: false },
    { name: 'a newer minor with an older patch', version: [1, 41, 0], expected: true },
    { name: 'an older minor with a newer patch', version: [1, 39, 9], expected: false },
    { name: 'a newer major with older rest', version: [2, 0, 0], expected: true },
    { name: 'an older major with newer rest', version: [0, 99, 99], expected: false },
  ])('$name', ({ version, expected }) => {
    expect(isAtLeast(version, [1, 40, 2])).toBe(expected)
  })
})

test('formatVersion joins the parts', () => {
  expect(formatVersion([1, 40, 0])).toBe('1.40.0')
})
