/** The longest token id has ten digits, and one comma. */
const bytesPerToken = 11
const zero = 0x30
const comma = 0x2c

/**
 * A JSON object as bytes: the given fields, and `token_ids`. A long conversation's ids are most of what LMCache is sent, several times for every turn,
 * and `JSON.stringify` takes four times as long for them.
 */
export const prefixBody = (fields: Readonly<Record<string, string | number>>, tokens: Uint32Array): Uint8Array => {
  const head = Buffer.from('{"token_ids":[')
  const tail = Buffer.from(`],${JSON.stringify(fields).slice(1)}`)
  // Every byte up to the end of what is returned is written.
  const bytes = Buffer.allocUnsafe(head.length + tokens.length * bytesPerToken + tail.length)
  bytes.set(head)
  let at = head.length
  for (let index = 0; index < tokens.length; index += 1) at = writeToken(bytes, at, tokens[index] ?? 0)
  // The last one's comma goes.
  if (tokens.length > 0) at -= 1
  bytes.set(tail, at)
  return bytes.subarray(0, at + tail.length)
}

/** Writes the digits, the last one first, and a comma. Returns where the next one begins. */
const writeToken = (bytes: Uint8Array, start: number, token: number): number => {
  const end = start + digitsOf(token)
  bytes[end] = comma
  let rest = token
  for (let at = end - 1; at >= start; at -= 1) {
    const others = (rest / 10) >>> 0
    bytes[at] = zero + rest - others * 10
    rest = others
  }
  return end + 1
}

const digitsOf = (token: number): number => {
  let digits = 1
  for (let limit = 10; token >= limit; limit *= 10) digits += 1
  return digits
}
