import { modelsOf, type OpenHandle, readChain } from './chain-reader.ts'
import type { DeletedResponse } from './conversations.ts'
import type { HistoryStore } from './history-store.ts'

/** A conversation moves on with each turn: it is asked for anew so often. */
const maxTries = 5

export const removeHandle = async (
  store: Pick<HistoryStore, 'remove' | 'read'>,
  kind: 'response' | 'conversation',
  find: () => Promise<OpenHandle | undefined>,
): Promise<DeletedResponse> => {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const found = await find()
    if (found === undefined) return { kind: 'unknown' }
    const { tenant, name, handle, secrets } = found
    const models = modelsOf((await readChain(store, found)) ?? [])
    const outcome = await store.remove({ tenant, name, kind, path: handle.path })
    if (outcome.kind === 'unknown') return outcome
    if (outcome.kind === 'removed') return { kind: 'deleted', root: secrets.root, ended: outcome.rootGone, models }
  }
  throw new Error('A conversation took a turn each time that it was about to be deleted')
}
