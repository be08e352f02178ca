/** One numbered message of an engine's publisher: `topic, 8-byte big-endian number, payload`. */
export type EventMessage =
  | { readonly kind: 'batch'; readonly sequence: number; readonly payload: Uint8Array }
  /** A replay is complete: its number is -1. */
  | { readonly kind: 'end' }
  /** Of another topic, which may begin the same. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'nonsense' }

const endOfReplay = -1n

export const readMessage = (frames: readonly Buffer[], topic: string): EventMessage => {
  const [name, number, payload, ...others] = frames
  if (name === undefined || number?.length !== 8 || payload === undefined || others.length > 0) {
    return { kind: 'nonsense' }
  }
  const sequence = number.readBigInt64BE()
  if (sequence === endOfReplay) return { kind: 'end' }
  if (name.toString('utf8') !== topic) return { kind: 'foreign' }
  if (sequence < 0n || sequence > BigInt(Number.MAX_SAFE_INTEGER)) return { kind: 'nonsense' }
  return { kind: 'batch', sequence: Number(sequence), payload }
}

export const encodeSequence = (sequence: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(sequence))
  return bytes
}
