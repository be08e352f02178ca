import type { KvEvents } from './kv-events.ts'

/** For fleets whose engines send no events: nothing is known of any pod. */
export const createNoKvEvents = (): KvEvents => ({
  residentTokens: () => undefined,
  turnTokens: async () => undefined,
  isLive: () => false,
  stop: async () => {},
})
