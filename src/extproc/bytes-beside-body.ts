/** Tags of `request_body` and `response_body` in ext_proc's ProcessingRequest. */
const bodyTags: ReadonlySet<number | undefined> = new Set([0x22, 0x2a])

/**
 * Bytes of a message beside the body that it begins with. Decoding takes time for each field, which may be two bytes
 * long, and a body is one field. Envoy writes fields in the order of their numbers, and so a body first.
 */
export const bytesBesideBody = (message: Buffer): number => {
  if (!bodyTags.has(message[0])) return message.length
  const outer = readLength(message, 1)
  // HttpBody: `body` is its first field.
  return message[outer.next] === 0x0a ? message.length - readLength(message, outer.next + 1).value : message.length
}

/** A number of up to five bytes with seven bits each, the lowest first (varint). */
const readLength = (message: Buffer, start: number): { readonly value: number; readonly next: number } => {
  let value = 0
  for (let index = 0; index < 5; index += 1) {
    const byte = message[start + index] ?? 0
    value += (byte & 0x7f) * 128 ** index
    if (byte < 0x80) return { value, next: start + index + 1 }
  }
  return { value: 0, next: start }
}
