import { kvStoreFullNote } from '../eviction.ts'
import type { SessionKey, StoredKv } from '../session-record.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import type { SessionTable } from './session-table.ts'

/** Which artefact is whose: commits, notes and drops. */
export interface SessionArtefacts {
  commit(commit: { readonly key: SessionKey; readonly kv: StoredKv }, nowMs: number): boolean
  note(note: { readonly key: SessionKey; readonly reason: string }, nowMs: number): void
  drop(drop: { readonly key: SessionKey; readonly artefactId: string; readonly reason: string }, nowMs: number): void
  /** Drops those that a session has; resolves to how many. */
  dropAll(drop: { readonly artefactIds: readonly string[]; readonly reason: string }, nowMs: number): number
}

export const createSessionArtefacts = (options: {
  readonly table: SessionTable
  readonly removals: MemoryRemovals
  readonly supersededGraceMs: number
}): SessionArtefacts => {
  const { table, removals, supersededGraceMs } = options

  const drop = (key: SessionKey, artefactId: string, reason: string, nowMs: number): boolean => {
    const session = table.findLive(key, nowMs)
    if (session?.kv?.artefactId !== artefactId) return false
    table.dropKv(session, reason, nowMs)
    return true
  }

  return {
    commit({ key, kv }, nowMs) {
      const session = table.findLive(key, nowMs)
      const present = session?.kv
      if (session !== undefined && present?.artefactId === kv.artefactId) {
        table.setKv(session, kv, nowMs)
        return true
      }
      const isForward = session !== undefined && kv.turn >= (present?.turn ?? 0)
      if (!isForward || !removals.canCommit(kv.artefactId)) {
        removals.queueArtefact(key, kv, nowMs)
        return false
      }
      if (!table.hasRoomFor(session, kv, nowMs)) {
        removals.queueArtefact(key, kv, nowMs)
        // It may have had to make room itself.
        const left = table.findLive(key, nowMs)
        if (left !== undefined) left.kvNote = kvStoreFullNote
        return false
      }
      removals.commit(kv.artefactId)
      session.kvNote = undefined
      table.setKv(session, kv, nowMs)
      if (present !== undefined) removals.queueArtefact(key, present, nowMs + supersededGraceMs)
      return true
    },

    note({ key, reason }, nowMs) {
      const session = table.findLive(key, nowMs)
      if (session !== undefined) session.kvNote = reason
    },

    drop({ key, artefactId, reason }, nowMs) {
      drop(key, artefactId, reason, nowMs)
    },

    dropAll({ artefactIds, reason }, nowMs) {
      return artefactIds.filter((artefactId) => {
        const key = table.ownerOf(artefactId)
        return key !== undefined && drop(key, artefactId, reason, nowMs)
      }).length
    },
  }
}
