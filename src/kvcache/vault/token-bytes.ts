import { endianness } from 'node:os'

const bytesPerToken = Uint32Array.BYTES_PER_ELEMENT
const isBigEndian = endianness() === 'BE'

/** Token ids one after the other, 4 bytes each, little endian whatever the machine is. A copy. */
export const tokensToBytes = (tokens: Uint32Array): Uint8Array => new Uint8Array(littleEndian(tokens.slice()).buffer)

/** What {@link tokensToBytes} was given; undefined when the bytes cannot be token ids, since their number is no multiple of 4. A copy. */
export const tokensFromBytes = (bytes: Uint8Array): Uint32Array | undefined => {
  if (bytes.length % bytesPerToken !== 0) return undefined
  const tokens = new Uint32Array(bytes.length / bytesPerToken)
  new Uint8Array(tokens.buffer).set(bytes)
  return littleEndian(tokens)
}

/** The same numbers; turns their bytes around, in place, on a machine that has them the other way. */
const littleEndian = (tokens: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> => {
  if (isBigEndian) Buffer.from(tokens.buffer).swap32()
  return tokens
}
