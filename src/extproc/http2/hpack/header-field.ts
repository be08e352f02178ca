/** A header as HTTP/2 carries it: name in lower case, value as latin1. */
export interface HeaderField {
  readonly name: string
  readonly value: string
  /** What the field counts in a table and in a header list: its characters, and 32 more. */
  readonly size: number
}

export const createHeaderField = (name: string, value: string): HeaderField => ({
  name,
  value,
  size: name.length + value.length + 32,
})
