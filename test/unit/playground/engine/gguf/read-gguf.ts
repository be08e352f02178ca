// A reader of GGUF files for tests, written from the format's description and not from the writer.
import type { Buffer } from 'node:buffer'

export interface ReadTensor {
  readonly name: string
  readonly dimensions: readonly number[]
  readonly typeId: number
  readonly data: Buffer
}

export interface ReadGguf {
  readonly version: number
  readonly metadata: ReadonlyMap<string, unknown>
  readonly tensors: readonly ReadTensor[]
}

const alignment = 32
const bytesPerNumber: Readonly<Record<number, number>> = { 0: 4, 1: 2 }

export function readGguf(file: Buffer): ReadGguf {
  let position = 0
  const take = (bytes: number) => {
    const piece = file.subarray(position, position + bytes)
    if (piece.length !== bytes) throw new Error(`the file ends at ${file.length}, in the middle of a value`)
    position += bytes
    return piece
  }
  const uint32 = () => take(4).readUInt32LE()
  const uint64 = () => Number(take(8).readBigUInt64LE())
  const text = () => take(uint64()).toString()
  const value = (type: number): unknown => {
    switch (type) {
      case 4:
        return uint32()
      case 5:
        return take(4).readInt32LE()
      case 6:
        return take(4).readFloatLE()
      case 7:
        return take(1).readUInt8() === 1
      case 8:
        return text()
      case 9: {
        const elementType = uint32()
        return Array.from({ length: uint64() }, () => value(elementType))
      }
      default:
        throw new Error(`value type ${type} is not used by this project`)
    }
  }

  if (take(4).toString() !== 'GGUF') throw new Error('not a GGUF file')
  const version = uint32()
  const tensorCount = uint64()
  const metadataCount = uint64()
  const metadata = new Map(Array.from({ length: metadataCount }, () => [text(), value(uint32())] as const))
  const table = Array.from({ length: tensorCount }, () => ({
    name: text(),
    dimensions: Array.from({ length: uint32() }, uint64),
    typeId: uint32(),
    offset: uint64(),
  }))
  const dataStart = Math.ceil(position / alignment) * alignment
  const tensors = table.map(({ offset, ...tensor }) => {
    if (offset % alignment !== 0) throw new Error(`${tensor.name} is not aligned`)
    const bytes = tensor.dimensions.reduce((product, size) => product * size, bytesPerNumber[tensor.typeId] ?? 0)
    position = dataStart + offset
    return { ...tensor, data: take(bytes) }
  })
  return { version, metadata, tensors }
}
