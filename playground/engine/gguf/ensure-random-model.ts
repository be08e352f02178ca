// Keeps the random model's file on disk: written once, then reused by every engine process that shares the folder.
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeGguf, type GgufContent, ggufFileBytes } from './gguf-writer.ts'
import { type RandomModelShape, randomModelContent, randomModelName } from './random-model.ts'

/** What came of `ensureRandomModel`. */
export interface RandomModelFile {
  readonly path: string
  readonly bytes: number
  /** `written` by this call, or `reused` as found. */
  readonly outcome: 'written' | 'reused'
}

/**
 * Returns the file of the model in `folder`, writing it if it is not there in full. Its name changes with its shape, so
 * a file of an older build is never taken for it. Several processes may call this at once: each writes the same bytes
 * to a name of its own and renames it.
 */
export async function ensureRandomModel(folder: string, shape: RandomModelShape): Promise<RandomModelFile> {
  const content = randomModelContent(shape)
  const bytes = ggufFileBytes(content)
  const path = join(folder, `${randomModelName}-${contentKey(shape, content)}.gguf`)
  const found = await stat(path).catch(() => undefined)
  if (found?.size === bytes) return { path, bytes, outcome: 'reused' }

  await mkdir(folder, { recursive: true })
  const unfinishedPath = `${path}.${randomUUID()}.part`
  try {
    const file = await open(unfinishedPath, 'wx')
    try {
      for (const piece of encodeGguf(content)) await file.writeFile(piece)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(unfinishedPath, path)
  } catch (error) {
    await rm(unfinishedPath, { force: true })
    throw error
  }
  return { path, bytes, outcome: 'written' }
}

function contentKey(shape: RandomModelShape, content: GgufContent): string {
  return createHash('sha256')
    .update(JSON.stringify([shape, content.metadata]))
    .digest('hex')
    .slice(0, 8)
}
