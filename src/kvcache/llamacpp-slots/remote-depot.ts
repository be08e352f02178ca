import { randomUUID } from 'node:crypto'
import type { ArtefactStore } from '../artefact-store/artefact-store.ts'
import type { KvLog } from '../kv-log.ts'
import { partOf } from './artefact.ts'
import type { ArtefactDepot } from './artefact-depot.ts'
import type { ArtefactFolder } from './artefact-folder.ts'

/**
 * Artefacts rest in a store of one's own, and pass through the engines' folder: the engine writes there, the file is handed to the store and
 * goes; before a load it is fetched under a name of its own, so that turns on several pods do not meet, and goes again afterwards.
 */
export const createRemoteDepot = (parts: {
  readonly folder: ArtefactFolder
  readonly store: ArtefactStore
  readonly log: KvLog
}): ArtefactDepot => {
  const { folder, store, log } = parts
  const discard = async (file: string): Promise<void> => {
    try {
      await folder.remove(file)
    } catch (err) {
      log.warn('a fetched file could not be removed', { file, err })
    }
  }
  return {
    isRemote: true,
    open: async (artefact, signal) => {
      if (artefact.content === undefined) return { kind: 'missing' }
      const content = await store.load(artefact.file, { signal })
      if (content === undefined) return { kind: 'missing' }
      const file = `${artefact.file}.${randomUUID()}.fetched`
      const close = (): Promise<void> => discard(file)
      try {
        await folder.write(file, content, { maxBytes: artefact.content.bytes, signal })
        const found = await folder.check({ ...artefact, file }, signal)
        if (found === 'intact') return { kind: 'ready', file, close }
        await close()
        return { kind: found }
      } catch (error) {
        await close()
        throw error
      }
    },
    keep: async ({ from, to, bytes, signal }) => {
      const digest = await folder.digest(from, { bytes, signal })
      if (digest === undefined) return undefined
      await store.save(to, folder.read(from, signal), { bytes, signal })
      await discard(from)
      return digest
    },
    remove: async (file, signal) => {
      await Promise.all([store.remove(file, { signal }), folder.remove(partOf(file))])
    },
  }
}
