import type { ContentKey, TokenVault } from '../../../src/kvcache/vault/token-vault.ts'
import { openEntry, sealEntry } from '../../../src/kvcache/vault/vault-cipher.ts'
import type { Damage } from './kv-test-bed.ts'

/** A vault whose entries can be listed, damaged and lost. Like any other one, it holds them encrypted. */
export interface OpenVault extends TokenVault {
  /** Names of the entries of artefacts. */
  artefacts(): readonly string[]
  /** Names of all entries. */
  names(): readonly string[]
  damage(name: string, how: Damage): void
  lose(): void
}

export const createOpenVault = (): OpenVault => {
  const entries = new Map<string, Buffer>()
  const names = (): readonly string[] => [...entries.keys()]
  return {
    put: async (entry) => {
      entries.set(entry.name, await sealEntry(entry))
    },
    get: async (name: string, contentKey: ContentKey) => {
      const sealed = entries.get(name)
      return sealed === undefined ? undefined : openEntry(sealed, { name, contentKey })
    },
    delete: async (doomed) => {
      for (const name of doomed) entries.delete(name)
    },
    artefacts: () => names().filter((name) => !name.startsWith('opening:')),
    names,
    damage: (name, how) => {
      const sealed = entries.get(name)
      if (sealed === undefined) throw new Error('there is no such entry')
      const middle = Math.floor(sealed.length / 2)
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(middle) ^ 0x55, middle)
      entries.set(name, how === 'cut' ? sealed.subarray(0, middle) : changed)
    },
    lose: () => entries.clear(),
  }
}
