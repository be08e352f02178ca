import type { StoredKv } from '../session-record.ts'
import type { NewLiveSession, Tombstone } from './memory-session.ts'

/** What a record takes beside its long texts: objects, numbers, the pod's name, and its places in the indexes. Measured with bench/sessions. */
const recordBytes = 1_600
const storedKvRecordBytes = 250
const tombstoneRecordBytes = 450

/** About how much of this process's memory a session takes. */
export const sessionBytes = ({ sealedId, model, kv }: Pick<NewLiveSession, 'sealedId' | 'model' | 'kv'>): number =>
  recordBytes + sealedId.length + model.length + storedKvBytes(kv)

/** What it takes of that to know what KV is stored. */
export const storedKvBytes = (kv: StoredKv | undefined): number =>
  kv === undefined ? 0 : storedKvRecordBytes + kv.payload.length + kv.artefactId.length

/** About how much of this process's memory a tombstone takes. */
export const tombstoneBytes = (tombstone: Tombstone): number =>
  tombstone.kind === 'deleted'
    ? tombstoneRecordBytes
    : tombstoneRecordBytes + tombstone.sealedId.length + tombstone.model.length
