import type { ClockReading } from './clock-reading.ts'

/** Something that was asked for, or why it is not known. */
export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string }

/** What a part says, and the clocks that its answers showed. */
export interface Seen<T> {
  readonly facts: Known<T>
  readonly clocks: readonly ClockReading[]
}

export const known = <T>(value: T): Known<T> => ({ kind: 'known', value })
export const unknown = (why: string): Known<never> => ({ kind: 'unknown', why })
