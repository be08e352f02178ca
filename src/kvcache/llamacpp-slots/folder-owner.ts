import { randomUUID } from 'node:crypto'
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import type { ConnectorParts } from '../connector-definition.ts'
import { unlessMissing } from './artefact-files.ts'

/** The marker's name. It is no name of an artefact. */
export const markerFile = '.context-cache-store.json'
const renewalMs = 2_000

const markerSchema = z.object({ store: z.string(), staleAfterMs: z.number().min(0) })

/**
 * Which session store the folder of stored KV belongs to: the sweep of another one would take its files for orphans. A
 * file in the folder names the store, and is touched every 2 s while a gateway of the store runs.
 */
export interface FolderOwner {
  /** Takes the folder if nobody has it, and says whether it is ours. The last answer counts, if there is one. */
  isOurs(): Promise<boolean>
  /** The same, read anew: a process that stood still longer than its store allows may have lost the folder. */
  isStillOurs(): Promise<boolean>
  /** Gives the folder back, if it goes with this process. */
  close(): Promise<void>
}

export const createFolderOwner = (
  directory: string,
  { identity, warnings }: Pick<ConnectorParts, 'identity' | 'warnings'>,
): FolderOwner => {
  const path = join(directory, markerFile)
  let looked: Promise<boolean> | undefined
  /** Under which name it is ours. A store that lost its data may have another one. */
  let held: string | undefined

  const read = async () => {
    const found = await unlessMissing(Promise.all([readFile(path, 'utf8'), stat(path)]))
    if (found === undefined) return undefined
    const [text, { mtimeMs }] = found
    const marker = markerSchema.safeParse(readJson(text)).data
    return marker && { ...marker, isStale: Date.now() - mtimeMs > marker.staleAfterMs }
  }

  const take = async (store: string): Promise<void> => {
    // One that is left, as on a full disk, goes with the sweep of unfinished files.
    const draft = join(directory, `ctx-${randomUUID()}.store`)
    await writeFile(draft, JSON.stringify({ store, staleAfterMs: identity.staleAfterMs }))
    await rename(draft, path)
  }

  const isForeignTo = async (store: string): Promise<boolean> => {
    try {
      const before = await read()
      if (before?.store === store) await utimes(path, new Date(), new Date())
      else if (before === undefined || before.isStale || before.store === held) await take(store)
      // Of two stores that take the folder at once, the later one has it.
      const after = await read()
      warnings.clear('kv_folder_unavailable', directory)
      if (after?.store === store) held = store
      return after?.store !== store
    } catch (error) {
      // In a folder that this process cannot use, it deletes nothing.
      warnings.raiseOutage('kv_folder_unavailable', directory, error)
      return false
    }
  }

  const look = async (): Promise<boolean> => {
    const isForeign = await isForeignTo(await identity.name())
    if (isForeign) warnings.raise('kv_folder_foreign', directory, foreignFolderText(directory))
    else warnings.clear('kv_folder_foreign', directory)
    return !isForeign
  }

  const renew = (): Promise<boolean> => {
    looked = look()
    looked.catch(() => {
      looked = undefined
    })
    return looked
  }
  const timer = setInterval(() => void renew().catch(() => {}), renewalMs).unref()

  return {
    isOurs: () => looked ?? renew(),
    isStillOurs: renew,
    close: async () => {
      clearInterval(timer)
      // Data that ends with the process has no use for its KV.
      if (identity.staleAfterMs < 60_000 && (await looked?.catch(() => false)) === true) await rm(path, { force: true })
    },
  }
}

const foreignFolderText = (directory: string): string =>
  `The KV folder ${directory} belongs to another session store, so that no KV is loaded or stored: give this gateway a folder of its own (kv.directory), or the other one's session store`
