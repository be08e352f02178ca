import { isFunction, loadFunction, memberOf } from '../load-member.ts'
import type { ArtefactStore } from './artefact-store.ts'

/**
 * Loads an operator's own store: an ES module that exports `createArtefactStore`, a function that returns an {@link ArtefactStore} or a promise
 * of one. What the store needs to know it takes from wherever it likes, such as the environment.
 *
 * @throws Error when there is no such module, or it exports something else.
 */
export const loadArtefactStore = async (modulePath: string): Promise<ArtefactStore> => {
  const create = await loadFunction(modulePath, 'createArtefactStore')
  const store: unknown = await create()
  if (!isArtefactStore(store)) {
    throw new Error(`createArtefactStore of ${modulePath} does not give an object with save, load and remove`)
  }
  return store
}

const isArtefactStore = (store: unknown): store is ArtefactStore =>
  ['save', 'load', 'remove'].every((name) => isFunction(memberOf(store, name)))
