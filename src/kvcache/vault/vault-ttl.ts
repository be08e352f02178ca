import { clampCount } from '../../sessions/limits.ts'

/** At least 1 ms: 0 means for ever to one store, and is refused by the other. */
export const toTtlMs = (ttlMs: number): number => Math.max(1, clampCount(ttlMs))
