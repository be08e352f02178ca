/** Bytes that are no message. The only error that the decoders of this folder throw. */
export class CodecError extends Error {
  override readonly name = 'CodecError'
}
