/** Members of an object by name. */
export type Members = Readonly<Record<string, unknown>>

const none: Members = {}

/** Those of an object whose form is not known; any other value has none. */
export const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : none
