import { membersOf } from '../../json/members-of.ts'
import { created, isFunction, loadFunction } from '../load-member.ts'

/**
 * An operator's own place for stored KV: an object store, a database, another file system. Names are unique and never
 * written twice; contents are bytes, compared with their SHA-256 before an engine sees them, so a store verifies
 * nothing. A method that throws fails a load, offload or removal (which is tried again), never the turn.
 *
 * All methods are called concurrently, also by several gateways, and must stop soon after `signal` fires.
 */
export interface ArtefactStore {
  /**
   * Keeps `content` under `name`. May resolve only when `load` would give the whole of it: a save that throws, or whose
   * process dies, must leave nothing that `load` finds.
   */
  save(
    name: string,
    content: AsyncIterable<Uint8Array>,
    /** `bytes`: how long the content is. */
    options: { readonly bytes: number; readonly signal: AbortSignal },
  ): Promise<void>
  /** The content of this name; undefined: there is none. */
  load(name: string, options: { readonly signal: AbortSignal }): Promise<AsyncIterable<Uint8Array> | undefined>
  /** Forgets a name. One that is not there is no fault. */
  remove(name: string, options: { readonly signal: AbortSignal }): Promise<void>
}

/**
 * Loads an operator's own store: an ES module that exports the function `createArtefactStore`. It returns the
 * {@link ArtefactStore} or a promise of it. The store gets its settings by itself, for example from the environment.
 * @throws Error when there is no such module, or it exports something else.
 */
export const loadArtefactStore = async (modulePath: string): Promise<ArtefactStore> => {
  const create = await loadFunction(modulePath, 'createArtefactStore')
  const store = await created(`createArtefactStore of ${modulePath}`, create())
  if (!isArtefactStore(store)) {
    throw new Error(`createArtefactStore of ${modulePath} does not give an object with save, load and remove`)
  }
  return store
}

const isArtefactStore = (store: unknown): store is ArtefactStore =>
  ['save', 'load', 'remove'].every((name) => isFunction(membersOf(store)[name]))
