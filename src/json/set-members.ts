import type { JsonScan } from './scan-json-object.ts'

const closingBrace = 0x7d

/**
 * A JSON object with other values of some members; every other byte is as it was. A member that is missing goes behind
 * the last one. `scan`: of this text, for all names in `values`. A value is JSON, in pieces.
 */
export const setMembers = (
  text: Buffer,
  { members, values: count }: Extract<JsonScan, { kind: 'object' }>,
  values: ReadonlyMap<string, readonly Buffer[]>,
): Buffer => {
  const pieces: Buffer[] = []
  const present = [...members].filter(([name]) => values.has(name)).toSorted(([, a], [, b]) => a.start - b.start)
  let from = 0
  for (const [name, { start, end }] of present) {
    pieces.push(text.subarray(from, start), ...(values.get(name) ?? []))
    from = end
  }
  const last = text.lastIndexOf(closingBrace)
  pieces.push(text.subarray(from, last))
  let comma = count === 1 ? '' : ','
  for (const [name, value] of values) {
    if (members.has(name)) continue
    pieces.push(Buffer.from(`${comma}${JSON.stringify(name)}:`), ...value)
    comma = ','
  }
  pieces.push(text.subarray(last))
  return Buffer.concat(pieces)
}
