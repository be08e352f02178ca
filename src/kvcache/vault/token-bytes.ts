const bytesPerToken = Uint32Array.BYTES_PER_ELEMENT

/** Token ids one after the other, 4 bytes each, little endian whatever the machine is. */
export const tokensToBytes = (tokens: Uint32Array): Uint8Array => {
  const bytes = new Uint8Array(tokens.length * bytesPerToken)
  const view = new DataView(bytes.buffer)
  tokens.forEach((token, index) => {
    view.setUint32(index * bytesPerToken, token, true)
  })
  return bytes
}

/** What {@link tokensToBytes} was given; undefined when the bytes cannot be token ids, since their number is no multiple of 4. */
export const tokensFromBytes = (bytes: Uint8Array): Uint32Array | undefined => {
  if (bytes.length % bytesPerToken !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Uint32Array.from({ length: bytes.length / bytesPerToken }, (_none, index) =>
    view.getUint32(index * bytesPerToken, true),
  )
}
