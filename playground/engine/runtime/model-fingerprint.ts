import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

/** Things beside the model's file on which the KV's form depends. */
export interface FingerprintSettings {
  readonly modelPath: string
  /** Build of llama.cpp. */
  readonly llamaRelease: string
  readonly flashAttention: boolean | 'auto'
}

const headBytes = 1024 * 1024
const sampleBytes = 64 * 1024
const samples = 16

/**
 * Tells models apart: SHA-256 over the file's size, its first MiB (all metadata that matters), 16 samples spread over
 * the weights, and the settings. Reading the whole of a large model would take longer than loading it.
 */
export async function modelFingerprint(settings: FingerprintSettings): Promise<Buffer> {
  const file = await open(settings.modelPath)
  try {
    const { size } = await file.stat()
    const hash = createHash('sha256').update(JSON.stringify([size, settings.llamaRelease, settings.flashAttention]))
    const sampleStarts = Array.from({ length: samples }, (_, index) => Math.floor((size * index) / samples))
    for (const [start, length] of [[0, headBytes], ...sampleStarts.map((start) => [start, sampleBytes])] as [
      number,
      number,
    ][]) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(length, size - start)), 0, undefined, start)
      hash.update(buffer.subarray(0, bytesRead))
    }
    return hash.digest()
  } finally {
    await file.close()
  }
}
