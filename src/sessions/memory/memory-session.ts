import type { Due } from '../../async/deadline-queue.ts'
import type { SessionKey, SessionRecord, StoredKv } from '../session-record.ts'
import type { Place } from './idle-order.ts'
import type { TurnLease } from './turn-leases.ts'

/** A live session. */
export interface MemorySession
  extends Due<MemorySession>,
    Pick<SessionRecord, 'key' | 'tenant' | 'sealedId' | 'model' | 'createdAtMs'> {
  /** Rises with every session: its place in the tenant's list. */
  readonly sequence: number
  isLive: boolean
  state: 'creating' | 'active'
  expiresAtMs: number
  ttlSeconds: number
  turns: number
  prompt: number
  output: number
  cached: number
  pod: string | undefined
  /** What it has stored. */
  heldKv: HeldKv | undefined
  kvStatus: string | undefined
  /** Digest of the idempotency key that names it, in state *creating*. */
  retryDigest: string | undefined
  leases: readonly TurnLease[]
  /** What chooses it: an id, a client's name, or that name's prompt where it is not the first. */
  readonly by: 'id' | 'name' | 'prompt'
  /** Of a session that a name chooses: its prompts. */
  branches: readonly (Branch | undefined)[]
  /** When a turn last began or ended. */
  usedMs: number
  /** In the order by memory. */
  place: Place<MemorySession> | undefined
}

/** Stored KV, and the sessions that hold it: one, or several after forks. */
export class HeldKv {
  readonly kv: StoredKv
  holders: readonly MemorySession[]
  /** The session that stored it. */
  readonly owner: SessionKey
  /** Whether it ever had several holders. */
  isShared = false
  /** When a turn of one of them last began or ended, or one was forked. */
  usedMs: number
  /** In the order by use. */
  place: Place<HeldKv> | undefined

  constructor(kv: StoredKv, holder: MemorySession, usedMs: number) {
    this.kv = kv
    this.holders = [holder]
    this.owner = holder.key
    this.usedMs = usedMs
  }

  get leases(): readonly TurnLease[] {
    const [first, ...others] = this.holders
    return others.length === 0 ? (first?.leases ?? []) : this.holders.flatMap(({ leases }) => leases)
  }
}

/** What a session begins with. */
export type NewMemorySession = Pick<
  MemorySession,
  | 'key'
  | 'tenant'
  | 'sealedId'
  | 'model'
  | 'state'
  | 'expiresAtMs'
  | 'ttlSeconds'
  | 'pod'
  | 'retryDigest'
  | 'leases'
  | 'by'
  | 'branches'
>

/** A prompt that runs under a name. Its place in the list is its number. */
export interface Branch {
  readonly usedMs: number
  /** The last mark of its prompt. */
  readonly mark: string
}

/** What stays of a session that has ended; a deleted one keeps no texts. */
export interface Tombstone
  extends Readonly<Pick<MemorySession, 'tenant' | 'sequence' | 'sealedId' | 'model' | 'ttlSeconds' | 'by'>> {
  readonly kind: 'deleted' | 'expired'
  readonly cause: 'time' | 'eviction'
  forgetAtMs: number
  /** Of turns that may revive it, or that its deletion has overtaken. */
  leases: readonly TurnLease[]
  branches: MemorySession['branches']
}

export const toRecord = (session: MemorySession): SessionRecord => ({
  key: session.key,
  tenant: session.tenant,
  model: session.model,
  createdAtMs: session.createdAtMs,
  expiresAtMs: session.expiresAtMs,
  ttlSeconds: session.ttlSeconds,
  pod: session.pod,
  kv: session.heldKv?.kv,
  kvStatus: session.kvStatus,
  sealedId: session.sealedId,
  turns: session.turns,
  tokens: { prompt: session.prompt, output: session.output, cached: session.cached },
})

/** Heap bytes of a record with its places in the indexes, without its texts. Measured with bench/sessions. */
const recordBytes = 610
const kvBytes = 330
const tombstoneBytes = 450

export const sessionBytes = (session: Pick<MemorySession, 'sealedId' | 'model' | 'heldKv'>): number =>
  recordBytes +
  session.sealedId.length +
  session.model.length +
  (session.heldKv === undefined ? 0 : storedKvBytes(session.heldKv.kv))

export const storedKvBytes = (kv: StoredKv): number => kvBytes + kv.payload.length + kv.artefactId.length

export const bytesOfTombstone = ({ sealedId, model }: Tombstone): number =>
  tombstoneBytes + sealedId.length + model.length
