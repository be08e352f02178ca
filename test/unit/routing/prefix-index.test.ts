import { describe, expect, test } from '@jest/globals'
import { PrefixIndex } from '../../../src/routing/prefix-index.ts'

const entries = (map: ReadonlyMap<string, number>): Readonly<Record<string, number>> => Object.fromEntries(map)

describe('PrefixIndex', () => {
  test('returns the tokens that the last turn of a session left in each pod', () => {
    const index = new PrefixIndex({ maxSessions: 10 })
    index.set('s', 'a:1', 100)
    index.set('s', 'b:1', 200)
    index.set('s', 'a:1', 300)
    index.set('other', 'c:1', 50)
    expect(entries(index.tokensByPod('s'))).toEqual({ 'a:1': 300, 'b:1': 200 })
    expect(entries(index.tokensByPod('unknown'))).toEqual({})
  })

  test('a turn that leaves nothing changes nothing', () => {
    const index = new PrefixIndex({ maxSessions: 10 })
    index.set('s', 'a:1', 100)
    index.set('s', 'a:1', 0)
    expect(entries(index.tokensByPod('s'))).toEqual({ 'a:1': 100 })
  })

  test('a map that was returned does not change with later turns', () => {
    const index = new PrefixIndex({ maxSessions: 10 })
    index.set('s', 'a:1', 100)
    const before = index.tokensByPod('s')
    index.set('s', 'a:1', 200)
    expect(entries(before)).toEqual({ 'a:1': 100 })
  })

  test('above its limit it drops the session that was used least recently', () => {
    const index = new PrefixIndex({ maxSessions: 2 })
    index.set('s1', 'a:1', 1)
    index.set('s2', 'a:1', 1)
    index.tokensByPod('s1')
    index.set('s3', 'a:1', 1)
    expect(['s1', 's2', 's3'].map((key) => index.tokensByPod(key).size)).toEqual([1, 0, 1])
  })

  test('a session in more than 16 pods loses the pod that served it longest ago', () => {
    const index = new PrefixIndex({ maxSessions: 2 })
    for (let pod = 0; pod < 16; pod += 1) index.set('s', `pod-${pod}:1`, 5)
    index.set('s', 'pod-0:1', 5)
    index.set('s', 'pod-16:1', 5)
    const pods = [...index.tokensByPod('s').keys()]
    expect(pods).toHaveLength(16)
    expect(pods).not.toContain('pod-1:1')
  })

  test('a deleted session is in no pod, others stay', () => {
    const index = new PrefixIndex({ maxSessions: 10 })
    for (const key of ['s1', 's2']) index.set(key, 'a:1', 5)
    index.delete('s1')
    expect(['s1', 's2'].map((key) => entries(index.tokensByPod(key)))).toEqual([{}, { 'a:1': 5 }])
  })
})
