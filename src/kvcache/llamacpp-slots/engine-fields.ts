import type { EngineFields } from '../kv-connector.ts'

/**
 * Body fields of a request that must start from no KV of any session: any slot, and whatever lies there is not reused. The same for every
 * request, so that Envoy can add them by itself.
 */
export const fieldsWithoutSlot = { id_slot: -1, cache_prompt: false } as const

/** How a turn uses the slot that it holds. */
export interface SlotUse {
  readonly slot: number
  /** llama-server takes it as `n_keep` and reports it with the slot, which shows whose turn ran there last. It matters only with `--context-shift`, which excludes stored KV. */
  readonly tag: number
  /** Whether the slot holds KV of the session. If not, the engine must not reuse what lies there. */
  readonly holdsKv: boolean
}

/** Body fields of a turn that holds a slot. */
export const fieldsInSlot = ({ slot, tag, holdsKv }: SlotUse, salt: string): EngineFields => ({
  id_slot: slot,
  n_keep: tag,
  cache_prompt: holdsKv,
  cache_salt: salt,
})
