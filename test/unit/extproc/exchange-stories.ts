import { expect, test } from '@jest/globals'
import type { ExchangeInput } from '../../../src/extproc/exchange.ts'
import { play } from './exchange-script.ts'

/** One row: its name, what goes in, what comes out. */
export type Story = [name: string, inputs: readonly ExchangeInput[], effects: readonly string[]]

export const asked = 'decide_on_headers'
export const passed = 'passthrough request_headers'
export const goOn = 'continue request_headers'
export const whole = 'decide_on_body "{}"'
export const failed = 'reject internal_error'
export const refused = 'reject session_not_found'
export const broken = ['fault', 'end internal']

/** One test for each row. */
export const stories = (rows: readonly Story[]): void => {
  test.each<Story>(rows)('%s', (_name, inputs, effects) => {
    expect(play(inputs)).toEqual(effects)
  })
}
