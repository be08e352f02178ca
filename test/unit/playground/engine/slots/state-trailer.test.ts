import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  createStateHash,
  openTrailer,
  sealTrailer,
  trailerBytes,
} from '../../../../../playground/engine/slots/state-trailer.ts'

const state = Buffer.from('the state of a slot')
const description = { tokenCount: 3000, fingerprint: Buffer.alloc(32, 7), saltHash: 'ab'.repeat(32) }
const seal = (saltHash = description.saltHash) =>
  sealTrailer({ ...description, saltHash }, createStateHash().update(state))
const open = (trailer: Buffer, front = state) => openTrailer(trailer, createStateHash().update(front))

describe('the trailer of a slot file', () => {
  test('tells what was sealed', () => {
    expect(seal()).toHaveLength(trailerBytes)
    expect(open(seal())).toEqual({ kind: 'valid', description })
  })

  test('knows a slot without salt', () => {
    expect(open(seal(''))).toEqual({ kind: 'valid', description: { ...description, saltHash: '' } })
  })

  test('shows any flipped bit, in the state as in the trailer', () => {
    const whole = Buffer.concat([state, seal()])
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(7), (position, bit) => {
        const damaged = Buffer.from(whole)
        damaged.writeUInt8(damaged.readUInt8(position) ^ (1 << bit), position)
        expect(open(damaged.subarray(state.length), damaged.subarray(0, state.length)).kind).toBe('invalid')
      }),
    )
  })

  test('is not found in something else', () => {
    expect(open(Buffer.alloc(trailerBytes))).toEqual({ kind: 'invalid', reason: 'not a slot file' })
  })
})
