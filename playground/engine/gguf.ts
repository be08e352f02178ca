// Encodes a GGUF version 3 file: header, metadata, tensor table, then the tensors' data, all little endian.
// Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

/** One metadata value with the type it is stored as. */
export type GgufValue =
  | { readonly type: 'uint32' | 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s'; readonly value: readonly number[] }

/** One tensor. The writer decides its place in the file, `fill` its bytes. */
export interface GgufTensor {
  readonly name: string
  readonly type: 'f32' | 'bf16'
  /** Sizes, the contiguous dimension first. */
  readonly dimensions: readonly number[]
  /** Writes all numbers into `target`, which has exactly their size in bytes. */
  readonly fill: (target: Buffer) => void
}

const alignmentBytes = 32
const valueTypes = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const
const tensorTypes = { f32: { id: 0, bytes: 4 }, bf16: { id: 30, bytes: 2 } } as const

/** Yields the head, then one piece for each tensor, so that only one tensor is in memory at a time. */
export function* encodeGguf(content: {
  readonly metadata: readonly (readonly [key: string, value: GgufValue])[]
  readonly tensors: readonly GgufTensor[]
}): Generator<Buffer, void, undefined> {
  const { metadata, tensors } = content
  const head: Buffer[] = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(metadata.length)]
  for (const [key, value] of metadata) head.push(text(key), ...encodeValue(value))
  let offset = 0
  for (const tensor of tensors) {
    const { name, dimensions, type } = tensor
    head.push(text(name), uint32(dimensions.length), ...dimensions.map(uint64))
    head.push(uint32(tensorTypes[type].id), uint64(offset))
    offset += aligned(tensorBytes(tensor))
  }
  const bytes = Buffer.concat(head)
  yield Buffer.concat([bytes], aligned(bytes.length))
  for (const tensor of tensors) {
    const data = Buffer.alloc(aligned(tensorBytes(tensor)))
    tensor.fill(data.subarray(0, tensorBytes(tensor)))
    yield data
  }
}

const encodeValue = (entry: GgufValue): readonly Buffer[] => {
  switch (entry.type) {
    case 'uint32':
      return [uint32(valueTypes.uint32), uint32(entry.value)]
    case 'float32':
      return [uint32(valueTypes.float32), float32(entry.value)]
    case 'bool':
      return [uint32(valueTypes.bool), Buffer.of(entry.value ? 1 : 0)]
    case 'string':
      return [uint32(valueTypes.string), text(entry.value)]
    case 'strings':
      return [...arrayHead(valueTypes.string, entry.value.length), ...entry.value.map(text)]
    case 'int32s':
      return [...arrayHead(valueTypes.int32, entry.value.length), ...entry.value.map(uint32)]
  }
}

const arrayHead = (elementType: number, length: number): readonly Buffer[] => [
  uint32(valueTypes.array),
  uint32(elementType),
  uint64(length),
]

const tensorBytes = ({ dimensions, type }: GgufTensor): number =>
  dimensions.reduce((product, size) => product * size, tensorTypes[type].bytes)

const aligned = (bytes: number): number => Math.ceil(bytes / alignmentBytes) * alignmentBytes

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([uint64(bytes.length), bytes])
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const uint64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

const float32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
