import { readdir } from 'node:fs/promises'
import { vllmFleet } from './fleet.ts'
import { directoryEntries, l2Files } from './store.ts'

/** All salts that the store holds files of. */
export const saltsInStore = async (): Promise<ReadonlySet<string>> => {
  const names = await readdir(vllmFleet().l2Directory)
  return new Set(names.flatMap((name) => /@([^@]+)\.data$/.exec(name)?.[1] ?? []))
}

/** Does something, and tells which salts the store holds since then and did not before. */
export const newSalts = async (act: () => Promise<unknown>): Promise<readonly string[]> => {
  const before = await saltsInStore()
  await act()
  return [...(await saltsInStore())].filter((salt) => !before.has(salt))
}

/** How much lies under a salt: files of the store, and chunks in the memory of LMCache servers. */
export const piecesOf = async (salt: string): Promise<{ readonly files: number; readonly inMemory: number }> => ({
  files: (await l2Files(salt)).length,
  inMemory: (await directoryEntries(salt, { tier: 'l1' })).length,
})

export const nothing = { files: 0, inMemory: 0 }
