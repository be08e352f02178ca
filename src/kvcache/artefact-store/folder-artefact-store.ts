import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCodeOf } from '../error-code.ts'
import type { ArtefactStore } from './artefact-store.ts'

/** Keeps artefacts in a folder, which is made when it is missing. Names are those of files. */
export const createFolderArtefactStore = async (directory: string): Promise<ArtefactStore> => {
  await mkdir(directory, { recursive: true })
  const pathOf = (name: string): string => {
    if (!/^[\w-][\w.-]*$/.test(name)) throw new Error('an artefact is named by letters, digits, dots and dashes')
    return join(directory, name)
  }
  return {
    save: async (name, content, { signal }) => {
      const path = pathOf(name)
      const unfinished = join(directory, `.${randomUUID()}.part`)
      try {
        await pipeline(Readable.from(content), createWriteStream(unfinished), { signal })
        await rename(unfinished, path)
      } catch (error) {
        await rm(unfinished, { force: true })
        throw error
      }
    },
    load: async (name, { signal }) => {
      try {
        const file = await open(pathOf(name))
        return file.createReadStream({ signal })
      } catch (error) {
        if (errorCodeOf(error) === 'ENOENT') return undefined
        throw error
      }
    },
    remove: (name) => rm(pathOf(name), { force: true }),
  }
}
