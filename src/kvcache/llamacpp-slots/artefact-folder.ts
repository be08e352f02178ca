import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { opendir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { LRUCache } from 'lru-cache'
import { errorCodeOf } from '../error-code.ts'
import type { Artefact } from './artefact.ts'

/** The KV folder that all pods and all gateways share. */
export interface ArtefactFolder {
  /**
   * Compares the file with what its payload says. An engine must never be given a file that is not `intact`: llama-server dies of a cut
   * one and does not notice a changed one.
   *
   * @throws when the folder cannot be read, or `signal` fires.
   */
  check(artefact: Artefact, signal: AbortSignal): Promise<'intact' | 'missing' | 'damaged'>
  /**
   * Gives a file that an engine has just written its name. Resolves to its digest; undefined: it is not `bytes` long, so it is not whole.
   *
   * @throws when the folder cannot be read or written, or `signal` fires.
   */
  publish(file: {
    readonly from: string
    readonly to: string
    readonly bytes: number
    readonly signal: AbortSignal
  }): Promise<string | undefined>
  /** A file's digest; undefined: it is not `bytes` long. @throws when the folder cannot be read, or `signal` fires. */
  digest(file: string, options: { readonly bytes: number; readonly signal: AbortSignal }): Promise<string | undefined>
  read(file: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Writes a file anew, and stops with an error beyond `maxBytes`. @throws when the content or the folder fails, or `signal` fires. */
  write(
    file: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<void>
  /** Whether there was such a file. @throws when the folder cannot be written. */
  remove(file: string): Promise<boolean>
  /** The names of all files older than `ageMs`, in batches. @throws when the folder cannot be read. */
  olderThan(ageMs: number, accept: (file: string) => boolean): AsyncGenerator<readonly string[]>
}

/** How long a file that was found intact is not read again, as long as it keeps its inode, size and time. */
const trustMs = 60_000
const maxTrusted = 10_000
const readBytes = 1024 * 1024
const batchSize = 500

export const createArtefactFolder = (directory: string): ArtefactFolder => {
  const digests = new LRUCache<string, string>({ max: maxTrusted, ttl: trustMs })
  const pathOf = (file: string): string => join(directory, file)

  /** A rename changes neither inode, size nor time, so a file keeps its digest when it gets its name. */
  const digestOf = async (file: string, stamp: Stamp, signal: AbortSignal): Promise<string> => {
    const key = `${stamp.ino}/${stamp.size}/${stamp.mtimeNs}`
    const known = digests.get(key)
    if (known !== undefined) return known
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(pathOf(file), { highWaterMark: readBytes, signal })) hash.update(chunk)
    const digest = hash.digest('hex')
    digests.set(key, digest)
    return digest
  }

  const wholeDigest: ArtefactFolder['digest'] = async (file, { bytes, signal }) => {
    const stamp = await stampOf(pathOf(file))
    return stamp?.size === BigInt(bytes) ? digestOf(file, stamp, signal) : undefined
  }

  return {
    check: async ({ file, content }, signal) => {
      if (content === undefined) return 'missing'
      const stamp = await stampOf(pathOf(file))
      if (stamp === undefined) return 'missing'
      if (stamp.size !== BigInt(content.bytes)) return 'damaged'
      return (await digestOf(file, stamp, signal)) === content.sha256 ? 'intact' : 'damaged'
    },
    publish: async ({ from, to, bytes, signal }) => {
      const digest = await wholeDigest(from, { bytes, signal })
      if (digest !== undefined) await rename(pathOf(from), pathOf(to))
      return digest
    },
    digest: wholeDigest,
    read: (file, signal) => createReadStream(pathOf(file), { highWaterMark: readBytes, signal }),
    write: (file, content, { maxBytes, signal }) =>
      pipeline(upTo(maxBytes, content), createWriteStream(pathOf(file), { flags: 'wx' }), { signal }),
    remove: async (file) => (await orMissing(unlink(pathOf(file)).then(() => true))) ?? false,
    olderThan: async function* (ageMs, accept) {
      let batch: string[] = []
      for await (const entry of await opendir(directory)) {
        if (!entry.isFile() || !accept(entry.name)) continue
        const stamp = await stampOf(pathOf(entry.name))
        if (stamp === undefined || Date.now() - Number(stamp.mtimeMs) < ageMs) continue
        batch.push(entry.name)
        if (batch.length < batchSize) continue
        yield batch
        batch = []
      }
      if (batch.length > 0) yield batch
    },
  }
}

async function* upTo(maxBytes: number, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the content is longer than ${maxBytes} bytes`)
    yield chunk
  }
}

interface Stamp {
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeMs: bigint
  readonly mtimeNs: bigint
}

const stampOf = (path: string): Promise<Stamp | undefined> => orMissing(stat(path, { bigint: true }))

const orMissing = async <T>(work: Promise<T>): Promise<T | undefined> => {
  try {
    return await work
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
