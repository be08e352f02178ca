import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream, type Dir } from 'node:fs'
import { opendir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ExpiringMap } from '../../async/expiring-map.ts'
import type { ArtefactStore } from '../artefact-store/artefact-store.ts'
import { type Artefact, partOf } from './artefact.ts'

export interface IntactFile {
  readonly file: string
  /** Whether it is there still: another turn of the session may have replaced it. */
  isThere(): Promise<boolean>
  close(): Promise<void>
}

/** How long a file that was read is not read again, as long as it keeps its inode, size and time. */
const trustMs = 60_000
const maxTrusted = 10_000
/** Hashing a piece blocks the event loop for about 0.2 ms; between two pieces other work runs. */
const pieceBytes = 256 * 1024
const filesPerPass = 500

/**
 * Files of stored KV in the folder that all pods and gateways share.
 * @throws from every method when folder or store cannot be read or written, or the signal fires.
 */
export interface ArtefactFiles {
  /**
   * Compares the artefact with its size and SHA-256 (hex). An engine must load only what is intact: llama-server dies
   * of a cut file and does not notice a changed one. Call `close` when no engine reads `file` any more.
   */
  open(artefact: Artefact, signal: AbortSignal): Promise<IntactFile | 'missing' | 'damaged'>
  /** Takes in what an engine wrote. Resolves to its SHA-256 (hex); undefined: not `bytes` long, so not whole. */
  keep(file: string, written: { readonly bytes: number; readonly signal: AbortSignal }): Promise<string | undefined>
  /** Deletes one file of the folder, if it is there. */
  delete(file: string): Promise<void>
  /** Removes an artefact and its part. Idempotent. */
  remove(file: string, signal: AbortSignal): Promise<void>
  /** The next files of the folder with their ages, at most 500; after the last one, or a failure, it begins anew. */
  next(): Promise<readonly { readonly file: string; readonly ageMs: number }[]>
  /** Closes the store, if there is one. */
  close(): Promise<void>
}

/**
 * With a `store`, artefacts only pass through the folder: a file is handed to the store after a save, and fetched under
 * a name of its own before a load.
 */
export const createArtefactFiles = (directory: string, store?: ArtefactStore): ArtefactFiles => {
  const digests = new ExpiringMap<string>({ lifetimeMs: trustMs, maxEntries: maxTrusted })
  let listing: Dir | undefined
  const close = async (): Promise<void> => {
    const open = listing
    listing = undefined
    await open?.close()
  }
  const pathOf = (file: string): string => join(directory, file)
  const remove = (file: string): Promise<void> => rm(pathOf(file), { force: true })
  /** Opens the file at the first read. */
  async function* read(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield* createReadStream(pathOf(file), { highWaterMark: pieceBytes, signal })
  }

  /** Undefined: there is no such file. A rename keeps inode, size and time, so that a file keeps its digest. */
  const measure = async (file: string) => {
    const found = await unlessMissing(stat(pathOf(file), { bigint: true }))
    if (found === undefined) return undefined
    const { ino, size, mtimeNs } = found
    return { bytes: Number(size), modifiedMs: Number(mtimeNs / 1_000_000n), key: `${ino}/${size}/${mtimeNs}` }
  }

  const digestOf = async (file: string, key: string, signal: AbortSignal): Promise<string> => {
    const known = digests.get(key)
    if (known !== undefined) return known
    const hash = createHash('sha256')
    for await (const piece of read(file, signal)) hash.update(piece)
    const digest = hash.digest('hex')
    digests.set(key, digest)
    return digest
  }

  const check = async (
    file: string,
    content: NonNullable<Artefact['content']>,
    signal: AbortSignal,
  ): Promise<'intact' | 'missing' | 'damaged'> => {
    const found = await measure(file)
    if (found === undefined) return 'missing'
    if (found.bytes !== content.bytes) return 'damaged'
    return (await digestOf(file, found.key, signal)) === content.sha256 ? 'intact' : 'damaged'
  }

  const intact = (file: string, closeFile: () => Promise<void>): IntactFile => ({
    file,
    isThere: async () => (await measure(file)) !== undefined,
    close: closeFile,
  })

  const fetch = async (from: ArtefactStore, { file, content }: Artefact, signal: AbortSignal) => {
    const stored = content && (await from.load(file, { signal }))
    if (content === undefined || stored === undefined) return 'missing'
    const fetched = `${file}.${randomUUID()}.fetched`
    // What cannot be removed goes with the sweep of unfinished files.
    const discard = (): Promise<void> => remove(fetched).catch(() => {})
    try {
      const target = createWriteStream(pathOf(fetched), { flags: 'wx' })
      await pipeline(upTo(content.bytes, stored), target, { signal })
      const found = await check(fetched, content, signal)
      if (found === 'intact') return intact(fetched, discard)
      await discard()
      return found
    } catch (error) {
      await discard()
      throw error
    }
  }

  return {
    open: async (artefact, signal) => {
      const { file, content } = artefact
      if (content === undefined) return 'missing'
      if (store !== undefined) return fetch(store, artefact, signal)
      const found = await check(file, content, signal)
      return found === 'intact' ? intact(file, async () => {}) : found
    },
    keep: async (file, { bytes, signal }) => {
      const part = partOf(file)
      const found = await measure(part)
      if (found?.bytes !== bytes) return undefined
      const digest = await digestOf(part, found.key, signal)
      if (store === undefined) await rename(pathOf(part), pathOf(file))
      else {
        const content = read(part, signal)
        try {
          await store.save(file, content, { bytes, signal })
        } finally {
          // A store that fails may have left it half read, and open.
          await content.return(undefined)
        }
        await remove(part)
      }
      return digest
    },
    delete: remove,
    remove: async (file, signal) => {
      await store?.remove(file, { signal })
      await Promise.all([file, partOf(file)].map(remove))
    },
    next: async () => {
      const found: { readonly file: string; readonly ageMs: number }[] = []
      listing ??= await opendir(directory)
      for (let read = 0; read < filesPerPass; read += 1) {
        const entry = await listing.read().catch((error: unknown) => close().then(() => Promise.reject(error)))
        if (entry === null) {
          await close()
          break
        }
        const measured = entry.isFile() ? await measure(entry.name) : undefined
        if (measured !== undefined) found.push({ file: entry.name, ageMs: Date.now() - measured.modifiedMs })
      }
      return found
    },
    close,
  }
}

/** Undefined where there is no such file. */
export const unlessMissing = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })

/** A store that returns more than it was given must not fill the folder. */
async function* upTo(maxBytes: number, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const piece of content) {
    bytes += piece.length
    if (bytes > maxBytes) throw new Error(`the content is longer than ${maxBytes} bytes`)
    yield piece
  }
}
