// Encodes a GGUF version 3 file: header, metadata, tensor table, then the tensors' data, all little endian.
// Layout as in the format's own description: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

/** One metadata value with the type it is stored as. */
export type GgufValue =
  | { readonly type: 'uint32'; readonly value: number }
  | { readonly type: 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s'; readonly value: readonly number[] }

/** How a tensor's numbers are stored. */
export type GgufTensorType = 'f32' | 'f16'

/** One tensor: its place in the file is decided by the writer, its bytes by `fill`. */
export interface GgufTensor {
  readonly name: string
  readonly type: GgufTensorType
  /** Sizes, the contiguous dimension first. */
  readonly dimensions: readonly number[]
  /** Writes all the tensor's numbers into `target`, which has exactly their size in bytes. */
  readonly fill: (target: Buffer) => void
}

/** Everything a GGUF file holds. */
export interface GgufContent {
  readonly metadata: readonly (readonly [key: string, value: GgufValue])[]
  readonly tensors: readonly GgufTensor[]
}

const version = 3
const alignmentBytes = 32
const valueTypeIds = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const
const tensorTypes = { f32: { id: 0, bytes: 4 }, f16: { id: 1, bytes: 2 } } as const

/**
 * Yields the file piece by piece (head first, then one piece for each tensor), so that only one tensor is in memory at
 * a time.
 */
export function* encodeGguf(content: GgufContent): Generator<Buffer, void, undefined> {
  yield pad(encodeHead(content))
  for (const tensor of content.tensors) {
    const data = Buffer.alloc(aligned(tensorBytes(tensor)))
    tensor.fill(data.subarray(0, tensorBytes(tensor)))
    yield data
  }
}

/** Size in bytes of the file that `encodeGguf` yields. */
export function ggufFileBytes(content: GgufContent): number {
  return content.tensors.reduce(
    (sum, tensor) => sum + aligned(tensorBytes(tensor)),
    aligned(encodeHead(content).length),
  )
}

function encodeHead({ metadata, tensors }: GgufContent): Buffer {
  const parts: Buffer[] = [Buffer.from('GGUF'), uint32(version), uint64(tensors.length), uint64(metadata.length)]
  for (const [key, value] of metadata) parts.push(text(key), ...encodeValue(value))
  let offset = 0
  for (const tensor of tensors) {
    const { name, dimensions, type } = tensor
    parts.push(text(name), uint32(dimensions.length), ...dimensions.map(uint64))
    parts.push(uint32(tensorTypes[type].id), uint64(offset))
    offset += aligned(tensorBytes(tensor))
  }
  return Buffer.concat(parts)
}

function encodeValue(entry: GgufValue): Buffer[] {
  switch (entry.type) {
    case 'uint32':
      return [uint32(valueTypeIds.uint32), uint32(entry.value)]
    case 'float32':
      return [uint32(valueTypeIds.float32), float32(entry.value)]
    case 'bool':
      return [uint32(valueTypeIds.bool), Buffer.of(entry.value ? 1 : 0)]
    case 'string':
      return [uint32(valueTypeIds.string), text(entry.value)]
    case 'strings':
      return [...arrayHead(valueTypeIds.string, entry.value.length), ...entry.value.map(text)]
    case 'int32s':
      return [...arrayHead(valueTypeIds.int32, entry.value.length), ...entry.value.map(int32)]
  }
}

function arrayHead(elementTypeId: number, length: number): Buffer[] {
  return [uint32(valueTypeIds.array), uint32(elementTypeId), uint64(length)]
}

function tensorBytes(tensor: GgufTensor): number {
  return tensor.dimensions.reduce((product, size) => product * size, tensorTypes[tensor.type].bytes)
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignmentBytes) * alignmentBytes
}

function pad(head: Buffer): Buffer {
  return Buffer.concat([head], aligned(head.length))
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([uint64(bytes.length), bytes])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
