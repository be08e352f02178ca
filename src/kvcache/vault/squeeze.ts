import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)

/** Below this the answer comes sooner without a trip to the thread pool, and little is saved. */
const minBytes = 1024
/** No stored bytes make more memory than this; longer content is left as it is. */
const maxBytes = 64 * 1024 * 1024
/**
 * The quickest: 100,000 token ids take 2 ms off the event loop. Token ids shrink to 2/3 at worst (uniform at random below 128,000) and to half
 * when they are distributed as in texts, JSON to less than half; the higher qualities gain a few percent and take five times as long and more.
 */
const quality = 1

/** The compressed content with its length in front, or undefined where compressing does not pay. */
export const squeeze = async (content: Uint8Array): Promise<Uint8Array | undefined> => {
  if (content.length < minBytes || content.length > maxBytes) return undefined
  const packed = await compress(content, {
    // In one piece: each takes a trip to the thread pool and back.
    chunkSize: content.length,
    params: { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
  })
  if (lengthBytes + packed.length >= content.length) return undefined
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32LE(content.length)
  return Buffer.concat([length, packed])
}

/** What {@link squeeze} was given; undefined for anything else. Never makes more bytes than are written in front. */
export const unsqueeze = async (squeezed: Uint8Array): Promise<Uint8Array | undefined> => {
  const bytes = Buffer.from(squeezed.buffer, squeezed.byteOffset, squeezed.byteLength)
  if (bytes.length < lengthBytes) return undefined
  const length = bytes.readUInt32LE()
  if (length < minBytes || length > maxBytes) return undefined
  try {
    const content = await decompress(bytes.subarray(lengthBytes), { chunkSize: length, maxOutputLength: length })
    return content.length === length ? content : undefined
  } catch {
    return undefined
  }
}

const lengthBytes = 4
