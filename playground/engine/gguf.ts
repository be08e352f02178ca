// Encodes a GGUF version 3 file: header, metadata, tensor table, then the tensors' data, all little endian.
// Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

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
const tensorTypes = { f32: { id: 0, bytes: 4 }, bf16: { id: 30, bytes: 2 } } as const

// Every machine that llama.cpp has prebuilt binaries for is little endian.
const uint32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer)
const uint64 = (value: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
const text = (value: string): Buffer => Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)])

/** A metadata value: whole numbers become uint32, lists of numbers int32. */
export type GgufValue = number | { readonly float32: number } | boolean | string | readonly string[] | readonly number[]

const encodeValue = (value: GgufValue): Buffer => {
  if (typeof value === 'number') return Buffer.concat([uint32(4), uint32(value)])
  if (typeof value === 'boolean') return Buffer.concat([uint32(7), Buffer.of(value ? 1 : 0)])
  if (typeof value === 'string') return Buffer.concat([uint32(8), text(value)])
  if ('float32' in value) return Buffer.concat([uint32(6), Buffer.from(Float32Array.of(value.float32).buffer)])
  const elements = value.map((element) => (typeof element === 'string' ? text(element) : uint32(element)))
  return Buffer.concat([uint32(9), uint32(typeof value[0] === 'string' ? 8 : 5), uint64(value.length), ...elements])
}

/** Yields the head, then one piece for each tensor, so that only one tensor is in memory at a time. */
export function* encodeGguf(content: {
  readonly metadata: Readonly<Record<string, GgufValue>>
  readonly tensors: readonly GgufTensor[]
}): Generator<Buffer, void, undefined> {
  const metadata = Object.entries(content.metadata)
  const { tensors } = content
  const head: Buffer[] = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(metadata.length)]
  for (const [key, value] of metadata) head.push(text(key), encodeValue(value))
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

const tensorBytes = ({ dimensions, type }: GgufTensor): number =>
  dimensions.reduce((product, size) => product * size, tensorTypes[type].bytes)

const aligned = (bytes: number): number => Math.ceil(bytes / alignmentBytes) * alignmentBytes
