import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { arrayItems } from '../../../src/json/array-items.ts'
import { objectMembers } from '../../../src/json/object-members.ts'
import { scanJsonObject } from '../../../src/json/scan-json-object.ts'
import { setMembers } from '../../../src/json/set-members.ts'
import { allSlices } from '../../support/all-slices.ts'

const limits = { maxJsonDepth: Number.POSITIVE_INFINITY, maxJsonKeys: Number.POSITIVE_INFINITY }
const spaced = fc.nat(3)
const jsonValue = fc.jsonValue({ stringUnit: 'binary' })

test('the items of an array are those that the platform’s parser finds', () => {
  fc.assert(
    fc.property(fc.array(jsonValue), spaced, (array, indent) => {
      const text = Buffer.from(` ${JSON.stringify(array, null, indent)}\n`)
      const items = allSlices(arrayItems(text)).map(String)
      expect(items.map((item) => JSON.parse(item))).toEqual(JSON.parse(String(text)))
      expect(items.every((item) => item === item.trim())).toBe(true)
    }),
  )
})

test('members are set and nothing else changes', () => {
  const names = ['a', 'store', 'é"', 'input']
  fc.assert(
    fc.property(
      fc.dictionary(fc.oneof(fc.constantFrom(...names.slice(0, 3)), fc.string()), jsonValue),
      fc.dictionary(fc.constantFrom('a', 'store', 'input'), jsonValue),
      spaced,
      (object, values, indent) => {
        const text = Buffer.from(`\n${JSON.stringify(object, null, indent)} `)
        const scan = allSlices(scanJsonObject(text, limits, Object.keys(values)))
        if (scan.kind !== 'object') throw new Error('an object was written')
        const pieces = new Map(
          Object.entries(values).map(([name, value]) => [name, [Buffer.from(JSON.stringify(value))]]),
        )
        const changed = setMembers(text, scan, pieces)
        expect(JSON.parse(String(changed))).toEqual(JSON.parse(JSON.stringify({ ...object, ...values })))
        if (pieces.size === 0) expect(changed).toEqual(text)
      },
    ),
  )
})

test('the members of an object are those that the platform’s parser finds', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), jsonValue), spaced, (object, indent) => {
      const text = Buffer.from(JSON.stringify(object, null, indent))
      const members = [...allSlices(objectMembers(text))].map(([name, value]) => [name, JSON.parse(String(value))])
      expect(members).toEqual(Object.entries(JSON.parse(String(text))))
    }),
  )
})
