import { partOf } from './artefact.ts'
import type { ArtefactDepot } from './artefact-depot.ts'
import type { ArtefactFolder } from './artefact-folder.ts'

/** The engines' folder is the store. */
export const createFolderDepot = (folder: ArtefactFolder): ArtefactDepot => ({
  isRemote: false,
  open: async (artefact, signal) => {
    const found = await folder.check(artefact, signal)
    return found === 'intact' ? { kind: 'ready', file: artefact.file, close: async () => {} } : { kind: found }
  },
  keep: (file) => folder.publish(file),
  remove: async (file) => {
    await Promise.all([folder.remove(file), folder.remove(partOf(file))])
  },
})
