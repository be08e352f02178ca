import { Buffer } from 'node:buffer'

const encoded = (text: string): Buffer => Buffer.from(text, 'latin1')

/** Headers as proxy-wasm lays them out. */
export const pairsOf = (headers: Readonly<Record<string, string>>): Buffer => {
  const pairs = Object.entries(headers).map(([name, value]) => [encoded(name), encoded(value)] as const)
  const lengths = Buffer.alloc(4 + 8 * pairs.length)
  lengths.writeUInt32LE(pairs.length, 0)
  for (const [index, [name, value]] of pairs.entries()) {
    lengths.writeUInt32LE(name.length, 4 + 8 * index)
    lengths.writeUInt32LE(value.length, 8 + 8 * index)
  }
  const end = Buffer.alloc(1)
  return Buffer.concat([lengths, ...pairs.flatMap(([name, value]) => [name, end, value, end])])
}

/** What such bytes say. */
export const headersIn = (bytes: Buffer): Readonly<Record<string, string>> => {
  const count = bytes.readUInt32LE(0)
  const headers: Record<string, string> = {}
  let at = 4 + 8 * count
  for (let index = 0; index < count; index++) {
    const nameEnd = at + bytes.readUInt32LE(4 + 8 * index)
    const valueEnd = nameEnd + 1 + bytes.readUInt32LE(8 + 8 * index)
    headers[bytes.toString('latin1', at, nameEnd)] = bytes.toString('latin1', nameEnd + 1, valueEnd)
    at = valueEnd + 1
  }
  return headers
}
