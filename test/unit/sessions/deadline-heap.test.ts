import { describe, expect, test } from '@jest/globals'
import { DeadlineHeap } from '../../../src/sessions/memory/deadline-heap.ts'

const takeAll = (heap: DeadlineHeap<string>, nowMs: number): readonly string[] => {
  const taken: string[] = []
  for (let key = heap.takeDue(nowMs); key !== undefined; key = heap.takeDue(nowMs)) taken.push(key)
  return taken
}

describe('the deadline heap', () => {
  test('gives out what is due, the earliest first, and nothing else', () => {
    const heap = new DeadlineHeap<string>()
    heap.set('c', 30)
    heap.set('a', 10)
    heap.set('d', 31)
    heap.set('b', 20)

    expect(takeAll(heap, 30)).toEqual(['a', 'b', 'c'])
    expect(takeAll(heap, 30)).toEqual([])
    expect(heap.size).toBe(1)
  })

  test.each([
    { name: 'back', deadlines: [10, 50], before: [], after: ['a'] },
    { name: 'forward', deadlines: [50, 10], before: ['a'], after: [] },
    { name: 'back and forth', deadlines: [50, 10, 60, 20, 40], before: [], after: ['a'] },
  ])('follows a deadline that is moved $name', ({ deadlines, before, after }) => {
    const heap = new DeadlineHeap<string>()
    for (const dueMs of deadlines) heap.set('a', dueMs)

    expect(takeAll(heap, 30)).toEqual(before)
    expect(takeAll(heap, 100)).toEqual(after)
  })

  test('forgets what is deleted', () => {
    const heap = new DeadlineHeap<string>()
    heap.set('a', 10)
    heap.delete('a')
    heap.delete('a')

    expect(takeAll(heap, 100)).toEqual([])
    expect(heap.size).toBe(0)
  })

  test('takes a key again after it was taken or deleted', () => {
    const heap = new DeadlineHeap<string>()
    heap.set('a', 50)
    heap.delete('a')
    heap.set('a', 10)
    expect(takeAll(heap, 20)).toEqual(['a'])
    heap.set('a', 60)

    expect(takeAll(heap, 50)).toEqual([])
    expect(takeAll(heap, 60)).toEqual(['a'])
  })
})
