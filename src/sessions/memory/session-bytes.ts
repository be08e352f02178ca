import type { StoredKv } from '../session-record.ts'
import type { Tombstone } from './tombstone.ts'

/** What a record takes beside its long texts: its row, and its places in the indexes. Measured with bench/sessions. */
const recordBytes = 450
const storedKvRecordBytes = 130
const tombstoneRecordBytes = 450

/** About how much of this process's memory a session takes. */
export const sessionBytes = ({
  sealedId,
  model,
  kv,
}: {
  readonly sealedId: string
  readonly model: string
  readonly kv?: StoredKv | undefined
}): number => recordBytes + sealedId.length + model.length + storedKvBytes(kv)

/** What it takes of that to know what KV is stored. */
export const storedKvBytes = (kv: StoredKv | undefined): number =>
  kv === undefined ? 0 : storedKvRecordBytes + kv.payload.length + kv.artefactId.length

/** About how much of this process's memory a tombstone takes. */
export const tombstoneBytes = (tombstone: Tombstone): number =>
  tombstone.kind === 'deleted'
    ? tombstoneRecordBytes
    : tombstoneRecordBytes + tombstone.sealedId.length + tombstone.model.length
