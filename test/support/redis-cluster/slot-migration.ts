import type { ClusterNode } from './cluster-node.ts'

/** A slot on its way from one primary to another. */
export interface SlotMigration {
  /** Moves the keys of the slot that are there now: at most `count`, default all. Returns how many it moved. */
  move(count?: number): Promise<number>
  /** Moves what is left, and makes the other primary the owner of the slot. */
  end(): Promise<void>
}

const movesAtOnce = 100
const moveTimeoutMs = 5_000

/** Opens a slot for migration: from now on `from` answers ASK for keys that it does not have, as `to` does MOVED. */
export const beginSlotMigration = async (options: {
  readonly slot: number
  readonly from: ClusterNode
  readonly to: ClusterNode
  /** All primaries: they are told of the new owner. */
  readonly primaries: readonly ClusterNode[]
}): Promise<SlotMigration> => {
  const { slot, from, to } = options
  await to.raw.cluster('SETSLOT', slot, 'IMPORTING', from.id)
  await from.raw.cluster('SETSLOT', slot, 'MIGRATING', to.id)
  const move = async (count = Number.POSITIVE_INFINITY): Promise<number> => {
    let moved = 0
    while (moved < count) {
      const keys = await from.raw.cluster('GETKEYSINSLOT', slot, Math.min(movesAtOnce, count - moved))
      if (keys.length === 0) break
      await from.raw.migrate(to.host, to.port, '', 0, moveTimeoutMs, 'KEYS', ...keys)
      moved += keys.length
    }
    return moved
  }
  return {
    move,
    end: async () => {
      await move()
      // The new owner first: if it is not told, nobody believes that it owns the slot.
      const others = options.primaries.filter((primary) => primary !== to && primary !== from)
      for (const node of [to, from, ...others]) await node.raw.cluster('SETSLOT', slot, 'NODE', to.id)
    },
  }
}
