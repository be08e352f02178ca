import { describe, expect, test } from '@jest/globals'
import { podLoad } from '../../../src/routing/pod.ts'
import { podState } from './pod-state.ts'

describe('podLoad', () => {
  test.each([
    { name: 'an idle pod', sketch: {}, load: 0 },
    { name: 'turns of this gateway', sketch: { inFlight: 3 }, load: 3 },
    { name: 'requests of others', sketch: { running: 2, waiting: 1 }, load: 3 },
    {
      name: 'turns that the engine told of are not counted twice',
      sketch: { inFlight: 3, inFlightAtRead: 3, running: 3 },
      load: 3,
    },
    {
      name: 'turns that came after the engine was asked',
      sketch: { inFlight: 5, inFlightAtRead: 2, running: 6, waiting: 1 },
      load: 10,
    },
    {
      name: 'turns that have ended since',
      sketch: { inFlight: 0, inFlightAtRead: 4, running: 4 },
      load: 0,
    },
    {
      name: 'turns that the engine had not got yet when it was asked',
      sketch: { inFlight: 4, inFlightAtRead: 4, running: 1 },
      load: 4,
    },
  ])('$name', ({ sketch, load }) => {
    expect(podLoad(podState('a:1', sketch))).toBe(load)
  })
})
