import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { opendir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
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

  return {
    check: async ({ file, content }, signal) => {
      if (content === undefined) return 'missing'
      const stamp = await stampOf(pathOf(file))
      if (stamp === undefined) return 'missing'
      if (stamp.size !== BigInt(content.bytes)) return 'damaged'
      return (await digestOf(file, stamp, signal)) === content.sha256 ? 'intact' : 'damaged'
    },
    publish: async ({ from, to, bytes, signal }) => {
      const stamp = await stampOf(pathOf(from))
      if (stamp?.size !== BigInt(bytes)) return undefined
      const digest = await digestOf(from, stamp, signal)
      await rename(pathOf(from), pathOf(to))
      return digest
    },
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
