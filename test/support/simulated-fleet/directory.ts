import { type ChunkKey, keyText } from './chunk-keys.ts'

export type Tier = 'l1' | 'l2'

export interface Placement {
  readonly instance_id: string
  readonly incarnation: number
  readonly tier: Tier
  readonly backend: string
  readonly size_bytes: number
  readonly shared: boolean
}

export interface ChunkReport {
  readonly kind: 'stored' | 'deleted'
  readonly instanceId: string
  readonly tier: Tier
  readonly key: ChunkKey
}

/** What the coordinator was told of who has what. It is never asked of the instances, so it can be late, and wrong. */
export interface Directory {
  report(report: ChunkReport): void
  placements(key: ChunkKey): readonly Placement[]
  entries(): readonly { readonly key: ChunkKey; readonly placements: readonly Placement[] }[]
  /** The instance's memory is gone. */
  dropMemory(instanceId: string): void
  /** Forgets everything, and every report that is under way, as a coordinator that ends and begins again. */
  forget(): void
  /** Resolves when every report made so far has arrived. */
  arrived(): Promise<void>
}

export const createDirectory = (options: { readonly lagMs: number; readonly chunkBytes: number }): Directory => {
  const known = new Map<string, { readonly key: ChunkKey; readonly placements: Map<string, Placement> }>()
  let epoch = 0
  let arriving: Promise<void> = Promise.resolve()

  const apply = ({ kind, instanceId, tier, key }: ChunkReport): void => {
    const name = keyText(key)
    const entry = known.get(name) ?? { key, placements: new Map<string, Placement>() }
    const place = `${instanceId} ${tier}`
    if (kind === 'deleted') entry.placements.delete(place)
    else {
      const backend = tier === 'l1' ? 'dram' : 'fs'
      const size_bytes = options.chunkBytes
      entry.placements.set(place, { instance_id: instanceId, incarnation: 1, tier, backend, size_bytes, shared: false })
    }
    if (entry.placements.size === 0) known.delete(name)
    else known.set(name, entry)
  }

  const list = () => [...known.values()].map(({ key, placements }) => ({ key, placements: [...placements.values()] }))

  return {
    report: (report) => {
      const sentIn = epoch
      const lag = new Promise<void>((resolve) => setTimeout(resolve, options.lagMs))
      // One after the other, as they were sent.
      arriving = Promise.all([arriving, lag]).then(() => {
        if (sentIn === epoch) apply(report)
      })
    },
    placements: (key) => [...(known.get(keyText(key))?.placements.values() ?? [])],
    entries: list,
    dropMemory: (instanceId) => {
      for (const { key } of list()) apply({ kind: 'deleted', instanceId, tier: 'l1', key })
    },
    forget: () => {
      epoch += 1
      known.clear()
    },
    arrived: () => arriving,
  }
}
