import type { SessionKey, StoredKv } from '../session-record.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import type { SessionTable } from './session-table.ts'

/** Which artefact is whose: commits, notes and drops. */
export interface SessionArtefacts {
  commit(commit: { readonly key: SessionKey; readonly kv: StoredKv }, nowMs: number): boolean
  note(note: { readonly key: SessionKey; readonly reason: string }, nowMs: number): void
  drop(drop: { readonly key: SessionKey; readonly artefactId: string; readonly reason: string }, nowMs: number): void
}

export const createSessionArtefacts = (options: {
  readonly table: SessionTable
  readonly removals: MemoryRemovals
  readonly supersededGraceMs: number
}): SessionArtefacts => {
  const { table, removals, supersededGraceMs } = options
  return {
    commit({ key, kv }, nowMs) {
      const session = table.findLive(key, nowMs)
      const present = session?.kv
      if (session !== undefined && present?.artefactId === kv.artefactId) {
        table.setKv(session, kv)
        return true
      }
      const isForward = session !== undefined && kv.turn >= (present?.turn ?? 0)
      if (!isForward || !removals.commit(kv.artefactId)) {
        removals.queueArtefact(key, kv, nowMs)
        return false
      }
      table.setKv(session, kv)
      session.kvNote = undefined
      if (present !== undefined) removals.queueArtefact(key, present, nowMs + supersededGraceMs)
      return true
    },

    note({ key, reason }, nowMs) {
      const session = table.findLive(key, nowMs)
      if (session !== undefined) session.kvNote = reason
    },

    drop({ key, artefactId, reason }, nowMs) {
      const session = table.findLive(key, nowMs)
      const present = session?.kv
      if (session === undefined || present?.artefactId !== artefactId) return
      table.setKv(session, undefined)
      session.kvNote = reason
      removals.queueArtefact(key, present, nowMs)
    },
  }
}
