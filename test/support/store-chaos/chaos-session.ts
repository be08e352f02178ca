import { hash } from 'node:crypto'
import type { SessionKey, SessionRecord, TenantKey } from '../../../src/sessions/session-record.ts'

/** An artefact that a client announced. */
export interface ChaosArtefact {
  readonly id: string
  readonly session: ChaosSession
  /** Whether the store said that it has it, and it did not go with a primary. */
  isAnnounced: boolean
  /** Whether a fault that leaves all of its data to one node cannot take that along. */
  isSecured: boolean
}

export interface ChaosExpectation {
  readonly isCreated: boolean
  readonly turns: number
  readonly isDeleted: boolean
  readonly wasDeleted: boolean
}

/** What the store answered of a session, which one client at a time uses. A call without an answer may have been done. */
export class ChaosSession {
  readonly key: SessionKey
  readonly tenant: TenantKey
  /** Of this session alone, so that the data of another one show. */
  readonly model: string
  readonly sealedId: string
  /** Whether it ends only when it is deleted. */
  readonly isLasting: boolean
  /** Whether the create was answered. */
  isCreated = false
  /** Turns that the store was asked to count, each however often. */
  askedTurns = 0
  /** Turns that it said it counted, but for those that went with a primary. */
  countedTurns = 0
  /** Turns that it said it counted, and that went with a primary before a replica had them. */
  lostTurns = 0
  readonly ttls: number[]
  /** `maybe`: a deletion was not answered. */
  deleted: 'no' | 'maybe' | 'yes' = 'no'
  /** What was answered when all replicas were last known to be in step. */
  secured = { isCreated: false, turns: 0, isDeleted: false }

  constructor(options: { readonly name: string; readonly tenant: TenantKey; readonly ttlSeconds: number }) {
    this.key = hash('sha256', options.name, 'base64url') as SessionKey
    this.tenant = options.tenant
    this.model = `model of ${options.name}`
    this.sealedId = `sealed id of ${options.name}`
    this.ttls = [options.ttlSeconds]
    this.isLasting = options.ttlSeconds > 1_000
  }

  /** What has to hold of an answer that is asked for now. */
  expected(): ChaosExpectation {
    return { ...this.secured, wasDeleted: this.deleted === 'yes' }
  }

  answered(): ChaosSession['secured'] {
    return { isCreated: this.isCreated, turns: this.countedTurns, isDeleted: this.deleted === 'yes' }
  }

  /** A fault is over, and no call under way: what was answered of it and is not there went with a primary. */
  settle(record: SessionRecord | undefined): void {
    if (record === undefined) {
      if (this.deleted === 'no') this.isCreated = false
      return
    }
    if (this.deleted === 'yes') this.deleted = 'maybe'
    const lost = Math.max(0, this.countedTurns - record.turns)
    this.lostTurns += lost
    this.countedTurns -= lost
  }

  /** What is wrong with what the store says of it. */
  problemsOf(record: SessionRecord | undefined, secured: ChaosExpectation): readonly string[] {
    if (record === undefined) {
      const mustBe = secured.isCreated && this.isLasting && this.deleted === 'no'
      return mustBe ? ['is lost, though the replicas had it'] : []
    }
    const { key, tenant, model, sealedId, turns, ttlSeconds } = record
    const isOwn = key === this.key && tenant === this.tenant && model === this.model && sealedId === this.sealedId
    return [
      ...(isOwn ? [] : [`has the data of another one: ${model}`]),
      ...(this.ttls.includes(ttlSeconds) ? [] : [`has a TTL that nobody gave it: ${ttlSeconds}`]),
      ...(turns > this.askedTurns ? [`counted ${turns} turns of ${this.askedTurns}`] : []),
      ...(this.isLasting && turns < secured.turns ? [`forgot turns: ${turns} of ${secured.turns}`] : []),
      ...(secured.isDeleted ? ['lives, though the replicas had its deletion'] : []),
    ]
  }
}
