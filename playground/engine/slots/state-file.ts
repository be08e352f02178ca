// Saving and loading one slot's file.
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import type { TokenSequence } from '../runtime/inference-runtime.ts'
import { createStateHash, openTrailer, type StateDescription, sealTrailer, trailerBytes } from './state-trailer.ts'

/** What came of `loadStateFile`. */
export type LoadStateOutcome =
  | { readonly kind: 'loaded'; readonly bytes: number; readonly description: StateDescription }
  /** The sequence is as it was. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** llama.cpp could not take the state: the sequence is empty. */
  | { readonly kind: 'cleared'; readonly reason: string }

const chunkBytes = 1024 * 1024

/** Where and how to save. */
export interface SaveStateOptions {
  readonly path: string
  /** Path in the same folder under which the file is written until it is complete. */
  readonly unfinishedPath: string
  readonly fingerprint: Buffer
  readonly saltHash: string
}

/**
 * Saves the sequence. Returns the file's size. An existing file is replaced in one step; on an error nothing is left
 * behind.
 */
export async function saveStateFile(sequence: TokenSequence, options: SaveStateOptions): Promise<number> {
  const { path, unfinishedPath, fingerprint, saltHash } = options
  try {
    await sequence.save(unfinishedPath)
    const file = await open(unfinishedPath, 'r+')
    try {
      const { size } = await file.stat()
      const hash = await hashFront(file, size)
      await file.write(
        sealTrailer({ tokenCount: sequence.tokenCount(), fingerprint, saltHash }, hash),
        0,
        trailerBytes,
        size,
      )
      await rename(unfinishedPath, path)
      return size + trailerBytes
    } finally {
      await file.close()
    }
  } catch (error) {
    await rm(unfinishedPath, { force: true })
    throw error
  }
}

/** What to load and what it must fit. */
export interface LoadStateOptions {
  readonly path: string
  readonly fingerprint: Buffer
  /** Most tokens that the sequence can hold. */
  readonly maxTokens: number
}

/**
 * Verifies the file and loads it into the sequence. The file that was verified is the one loaded, also if another is
 * renamed over it meanwhile.
 */
export async function loadStateFile(sequence: TokenSequence, options: LoadStateOptions): Promise<LoadStateOutcome> {
  const file = await openExisting(options.path)
  if (file === undefined) return { kind: 'refused', reason: 'no such file' }
  try {
    const { size } = await file.stat()
    const verified = await verify(file, size, options)
    if (verified.kind === 'refused') return verified
    const { description } = verified
    const problem = await sequence.load(pathOfOpenFile(file, options.path)).then(() => undefined, messageOf)
    if (problem !== undefined) return { kind: 'cleared', reason: problem }
    if (sequence.tokenCount() === description.tokenCount) return { kind: 'loaded', bytes: size, description }
    await sequence.clear()
    return { kind: 'cleared', reason: 'the file holds another number of tokens than it says' }
  } finally {
    await file.close()
  }
}

type VerifyOutcome =
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'verified'; readonly description: StateDescription }

async function verify(file: FileHandle, size: number, options: LoadStateOptions): Promise<VerifyOutcome> {
  if (size < trailerBytes) return { kind: 'refused', reason: 'not a slot file' }
  const hash = await hashFront(file, size - trailerBytes)
  const trailer = Buffer.alloc(trailerBytes)
  await file.read(trailer, 0, trailerBytes, size - trailerBytes)
  const opened = openTrailer(trailer, hash)
  if (opened.kind === 'invalid') return { kind: 'refused', reason: opened.reason }
  const { description } = opened
  if (!description.fingerprint.equals(options.fingerprint))
    return { kind: 'refused', reason: 'the file is of another model' }
  if (description.tokenCount > options.maxTokens) return { kind: 'refused', reason: 'the slot is too small for it' }
  return { kind: 'verified', description }
}

async function hashFront(file: FileHandle, length: number) {
  const hash = createStateHash()
  const buffer = Buffer.alloc(Math.min(chunkBytes, length))
  for (let position = 0; position < length; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, length - position), position)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
  return hash
}

async function openExisting(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path)
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Leads to the very file that is open, whatever its name stands for by now. Windows has no such path. */
function pathOfOpenFile(file: FileHandle, path: string): string {
  return process.platform === 'win32' ? path : `/dev/fd/${file.fd}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
