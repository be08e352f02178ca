import { created, isFunction, loadFunction, memberOf } from '../load-member.ts'

/**
 * A place of one's own for stored KV: an object store, a database, another file system. Three methods, and nothing to be known of KV: names
 * are unique and never written twice, contents are bytes. What comes back is compared with its SHA-256 before an engine sees it, so a store
 * need not verify anything. Whatever a method throws counts as a failed load, offload or removal, never as a failed turn; a removal is tried again.
 *
 * All methods are called concurrently, also by several gateways, and must stop soon after `signal` fires.
 */
export interface ArtefactStore {
  /**
   * Keeps `content` under `name`. May resolve only when the whole of it would be loaded: a save that throws, or whose process dies, must leave
   * nothing that `load` finds.
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
 * Loads an operator's own store: an ES module that exports `createArtefactStore`, a function that returns an {@link ArtefactStore} or a promise
 * of one. What the store needs to know it takes from wherever it likes, such as the environment.
 *
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
  ['save', 'load', 'remove'].every((name) => isFunction(memberOf(store, name)))
