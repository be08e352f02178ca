/** Something that was asked for, or why it is not known. */
export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string }

export const known = <T>(value: T): Known<T> => ({ kind: 'known', value })
export const unknown = (why: string): Known<never> => ({ kind: 'unknown', why })
