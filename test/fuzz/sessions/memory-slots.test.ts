import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { KeyIndex, keyStartLength } from '../../../src/sessions/memory/key-index.ts'
import { SlotHeap } from '../../../src/sessions/memory/slot-heap.ts'
import { noSlot, SlotRows } from '../../../src/sessions/memory/slot-rows.ts'
import { noText, TextPool } from '../../../src/sessions/memory/text-pool.ts'

const keyLength = 43
/** They differ in their beginnings, and some of them in one place alone. */
const keyOf = (number: number): string => `${number}`.padStart(keyStartLength, '-').padEnd(keyLength, 'x')

const rowsFor = (slots: number, layout: { readonly textLength: number; readonly numbers: number }): SlotRows => {
  const rows = new SlotRows(layout)
  for (let slot = 0; slot < slots; slot += 1) rows.reserve(slot)
  return rows
}

describe('what the memory store keeps by slots', () => {
  test('rows keep what is written to them, on every page, and begin with zeros', () => {
    const write = fc.record({ slot: fc.nat({ max: 9_000 }), column: fc.nat({ max: 2 }), value: fc.double() })
    const property = fc.property(fc.array(write, { maxLength: 200 }), (writes) => {
      const rows = rowsFor(9_001, { textLength: 5, numbers: 3 })
      const plain = new Map<string, number>()
      for (const { slot, column, value } of writes) {
        rows.setNumber(slot, column, value)
        rows.setText(slot, `${slot}`.padStart(5))
        plain.set(`${slot} ${column}`, value)
      }
      for (const { slot } of writes) {
        const expected = [0, 1, 2].map((column) => plain.get(`${slot} ${column}`) ?? 0)
        expect([0, 1, 2].map((column) => rows.number(slot, column))).toEqual(expected)
        const place = rows.placeOf(slot)
        expect(Array.from(rows.pageOf(slot).subarray(place, place + 3))).toEqual(expected)
        expect(rows.text(slot)).toBe(`${slot}`.padStart(5))
      }
    })
    fc.assert(property, { numRuns: 20 })
  })

  test.each([
    { name: 'the text', start: 'abcde', is: true },
    { name: 'its beginning', start: 'abc', is: true },
    { name: 'nothing', start: '', is: true },
    { name: 'another text', start: 'abcdf', is: false },
    { name: 'more than the text', start: 'abcde ', is: false },
    { name: 'characters of two bytes', start: 'abcd\u0165', is: false },
  ])('a row begins with $name: $is', ({ start, is }) => {
    const rows = rowsFor(1, { textLength: 5, numbers: 0 })
    rows.setText(0, 'abcde')
    expect(rows.startsWith(0, start)).toBe(is)
  })

  test('a row takes no text of another length', () => {
    const rows = rowsFor(1, { textLength: 5, numbers: 0 })
    expect(() => rows.setText(0, 'abcd')).toThrow(RangeError)
  })

  test('the index of keys does what a map would', () => {
    const step = fc.record({
      name: fc.constantFrom('add', 'add', 'add', 'delete', 'find'),
      number: fc.nat({ max: 3_000 }),
    })
    const property = fc.property(fc.array(step, { minLength: 1_000, maxLength: 8_000, size: 'max' }), (steps) => {
      const rows = rowsFor(3_001, { textLength: keyLength, numbers: 0 })
      const index = new KeyIndex(rows)
      const plain = new Map<string, number>()
      const perform: Readonly<Record<string, (key: string, slot: number) => void>> = {
        add: (key, slot) => {
          if (plain.has(key)) return
          rows.setText(slot, key)
          index.add(key, slot)
          plain.set(key, slot)
        },
        delete: (key, slot) => {
          if (plain.delete(key)) index.delete(key, slot)
        },
        find: (key) => {
          const expected = plain.get(key) ?? noSlot
          expect([index.find(key), index.find(key.slice(0, keyStartLength))]).toEqual([expected, expected])
          expect(index.find(`${key.slice(0, -1)}y`)).toBe(noSlot)
        },
      }
      for (const { name, number } of steps) perform[name]?.(keyOf(number), number)
      expect(index.size).toBe(plain.size)
      for (let number = 0; number <= 3_000; number += 1) perform['find']?.(keyOf(number), number)
    })
    fc.assert(property, { numRuns: 15 })
  })

  test.each([
    { name: 'with an order among slots of one time', isOrdered: true },
    { name: 'without', isOrdered: false },
  ])('the heap does what a sorted list would, $name', ({ isOrdered }) => {
    const step = fc.record({
      name: fc.constantFrom('put', 'put', 'put', 'delete', 'take'),
      slot: fc.nat({ max: 60 }),
      time: fc.nat({ max: 30 }),
      order: fc.nat({ max: 1_000 }),
    })
    const property = fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const heap = new SlotHeap({ rows: rowsFor(61, { textLength: 0, numbers: 2 }), column: 1, isOrdered })
      const plain = new Map<number, { readonly time: number; readonly order: number }>()
      const perform: Readonly<Record<string, (step: { slot: number; time: number; order: number }) => void>> = {
        put: ({ slot, time, order }) => {
          heap.put(slot, time, order)
          plain.set(slot, { time, order: isOrdered ? order : 0 })
        },
        delete: ({ slot }) => {
          heap.delete(slot)
          plain.delete(slot)
        },
        take: () => {
          const [first] = [...plain.values()].sort((a, b) => a.time - b.time || a.order - b.order)
          const slot = heap.first
          expect(slot === noSlot).toBe(first === undefined)
          expect(plain.get(slot)).toEqual(first)
          heap.delete(slot)
          plain.delete(slot)
        },
      }
      for (const made of steps) perform[made.name]?.(made)
      expect(heap.size).toBe(plain.size)
      for (const [slot, { time, order }] of plain) {
        expect([heap.has(slot), heap.timeOf(slot), heap.orderOf(slot)]).toEqual([true, time, order])
      }
    })
    fc.assert(property, { numRuns: 200 })
  })

  test('the pool keeps a text for as long as it is used, under one number', () => {
    const step = fc.record({ name: fc.constantFrom('take', 'take', 'release'), text: fc.nat({ max: 20 }).map(String) })
    const property = fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const pool = new TextPool()
      const uses = new Map<string, number>()
      const perform: Readonly<Record<string, (text: string) => void>> = {
        take: (text) => {
          const known = pool.find(text)
          const number = pool.take(text)
          if (uses.has(text)) expect(number).toBe(known)
          uses.set(text, (uses.get(text) ?? 0) + 1)
        },
        release: (text) => {
          const left = (uses.get(text) ?? 0) - 1
          pool.release(pool.find(text))
          if (left > 0) uses.set(text, left)
          else uses.delete(text)
        },
      }
      for (const { name, text } of steps) {
        perform[name]?.(text)
        expect(pool.textOf(pool.find(text))).toBe(uses.has(text) ? text : undefined)
      }
      const numbers = [...uses.keys()].map((text) => pool.find(text))
      expect(new Set(numbers).size).toBe(uses.size)
      // Numbers are given anew.
      expect(Math.max(noText, ...numbers)).toBeLessThanOrEqual(21)
    })
    fc.assert(property, { numRuns: 200 })
  })

  test('no text has a number of its own', () => {
    const pool = new TextPool()
    expect([pool.take(undefined), pool.find('never taken')]).toEqual([noText, noText])
    pool.release(noText)
    expect(pool.textOf(noText)).toBeUndefined()
  })
})
