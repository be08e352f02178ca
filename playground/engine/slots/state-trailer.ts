// What a slot's file carries behind llama.cpp's own state: whose KV it is, and a checksum over everything, so that KV
// of another model or with a single flipped bit is never used. llama.cpp reads the state from the front and leaves the
// trailer alone.
//
//   offset  bytes
//        0      8  mark "CCGSLOT1"
//        8      4  tokens held, unsigned, little endian
//       12      4  zero
//       16     32  fingerprint of model and settings
//       48     32  SHA-256 of the cache salt, zeros for none
//       80     32  SHA-256 of the state and of the trailer up to here
import { createHash, type Hash } from 'node:crypto'

/** Size of the trailer. */
export const trailerBytes = 112

const mark = Buffer.from('CCGSLOT1')
const checksumOffset = 80

/** What the trailer tells of the state in front of it. */
export interface StateDescription {
  readonly tokenCount: number
  /** 32 bytes. */
  readonly fingerprint: Buffer
  /** Hexadecimal SHA-256 of the cache salt, empty for none. */
  readonly saltHash: string
}

/** What came of opening a trailer. */
export type TrailerOutcome =
  | { readonly kind: 'valid'; readonly description: StateDescription }
  | { readonly kind: 'invalid'; readonly reason: 'not a slot file' | 'checksum mismatch' }

/** Builds the trailer. `stateHash` has taken in the whole state and is finished here. */
export function sealTrailer(description: StateDescription, stateHash: Hash): Buffer {
  const trailer = Buffer.alloc(trailerBytes)
  mark.copy(trailer)
  trailer.writeUInt32LE(description.tokenCount, 8)
  description.fingerprint.copy(trailer, 16)
  Buffer.from(description.saltHash, 'hex').copy(trailer, 48)
  stateHash.update(trailer.subarray(0, checksumOffset)).digest().copy(trailer, checksumOffset)
  return trailer
}

/** Reads a trailer. `stateHash` has taken in everything in front of it and is finished here. */
export function openTrailer(trailer: Buffer, stateHash: Hash): TrailerOutcome {
  if (!trailer.subarray(0, mark.length).equals(mark)) return { kind: 'invalid', reason: 'not a slot file' }
  const checksum = stateHash.update(trailer.subarray(0, checksumOffset)).digest()
  if (!trailer.subarray(checksumOffset).equals(checksum)) return { kind: 'invalid', reason: 'checksum mismatch' }
  const salt = trailer.subarray(48, checksumOffset)
  return {
    kind: 'valid',
    description: {
      tokenCount: trailer.readUInt32LE(8),
      fingerprint: Buffer.from(trailer.subarray(16, 48)),
      saltHash: salt.every((byte) => byte === 0) ? '' : salt.toString('hex'),
    },
  }
}

/** The hash to feed with the state. */
export function createStateHash(): Hash {
  return createHash('sha256')
}
