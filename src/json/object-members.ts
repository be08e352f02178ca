import { arrayItems, trimmed } from './array-items.ts'
import { readJson } from './read-json.ts'

/** A longer name is left out. */
const maxNameBytes = 512
const colon = 0x3a

/**
 * The members of an object in a JSON text that was checked before, in their order: the value of each as it stands there.
 * Of several with one name the last counts. Another value has none. In slices.
 */
export function* objectMembers(object: Buffer): Generator<undefined, ReadonlyMap<string, Buffer>> {
  const members = new Map<string, Buffer>()
  if (object[0] !== openBrace) return members
  for (const member of yield* arrayItems(object)) {
    const [literal] = /^"(?:[^"\\]|\\.)*"/.exec(member.toString('latin1', 0, maxNameBytes)) ?? []
    if (literal === undefined) continue
    const name = readJson(member.toString('utf8', 0, literal.length))
    const value = trimmed(member.subarray(member.indexOf(colon, literal.length) + 1))
    if (typeof name === 'string') members.set(name, value)
  }
  return members
}

const openBrace = 0x7b
