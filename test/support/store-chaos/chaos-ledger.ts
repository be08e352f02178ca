import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionRecord } from '../../../src/sessions/session-record.ts'
import { type SessionStore, StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { sentenceOf } from '../../../src/telemetry/sentence-of.ts'
import { eventually } from '../eventually.ts'
import type { ClusterNode } from '../redis-cluster/cluster-node.ts'
import type { AnswerWatch } from './answer-watch.ts'
import type { ChaosArtefact, ChaosExpectation, ChaosSession } from './chaos-session.ts'

/** For how long a breaker refuses calls before it tries one. */
const breakerOpenMs = 1_000

/** A stretch of time with one fault, or with none. */
export interface ChaosPeriod {
  readonly name: string
  readonly beganMs: number
  /** Partitions whose calls may fail. */
  readonly partitions: ReadonlySet<number>
  /** The primary of each partition at its begin. */
  readonly homes?: readonly ClusterNode[]
  /** Another server was replaced too: the machine was too busy for the cluster, and any call may have failed. */
  isSpread: boolean
}

/** A stretch of time without a fault. */
export const calmPeriod = (homes?: readonly ClusterNode[]): ChaosPeriod => ({
  name: 'none',
  beganMs: performance.now(),
  partitions: new Set(),
  ...(homes && { homes }),
  isSpread: false,
})

export interface ChaosFailure {
  readonly operation: string
  readonly partition: number | undefined
  readonly period: ChaosPeriod
  /** Since the period began. */
  readonly afterMs: number
  readonly reason: string
}

/** What clients asked of the store and were answered, and what cannot be. */
export class ChaosLedger {
  readonly sessions: ChaosSession[] = []
  readonly artefacts = new Map<string, ChaosArtefact>()
  /** Artefacts that were claimed for removal. */
  readonly claimed = new Set<string>()
  readonly counts: Record<string, number> = {}
  readonly violations: string[] = []
  readonly failures: ChaosFailure[] = []
  readonly periods: ChaosPeriod[] = [calmPeriod()]
  /** Of calls that go to one partition. */
  longestMs = 0
  /** Sessions that were seen again after the store said that they are deleted. */
  readonly undeleted = new Set<ChaosSession>()
  /** Announcements that went with a primary before a replica had them. */
  orphans = 0
  #underWay = 0
  /** While it is there, no call begins. */
  #pause: Promise<void> | undefined
  readonly #watch: AnswerWatch
  readonly #commandTimeoutMs: number

  constructor({ watch, commandTimeoutMs }: { readonly watch: AnswerWatch; readonly commandTimeoutMs: number }) {
    this.#watch = watch
    this.#commandTimeoutMs = commandTimeoutMs
  }

  /** Failures of calls whose partition no fault touched. */
  get untouched(): readonly ChaosFailure[] {
    return this.failures.filter(({ partition, period }) => {
      const isTouched = partition === undefined ? period.partitions.size > 0 : period.partitions.has(partition)
      return !period.isSpread && !isTouched
    })
  }

  /** Those of them whose server answered others in time. */
  get unexcused(): readonly ChaosFailure[] {
    return this.untouched.filter((failure) => !this.#wasLate(failure))
  }

  /** Whether the server of the call's partition let a plain client wait, too, while its breaker may have opened and stayed so. */
  #wasLate({ partition, period, afterMs }: ChaosFailure): boolean {
    const homes = partition === undefined ? period.homes : period.homes?.slice(partition, partition + 1)
    const failedMs = period.beganMs + afterMs
    const [sinceMs, lateMs] = [failedMs - 2 * this.#commandTimeoutMs - breakerOpenMs, this.#commandTimeoutMs / 2]
    return homes?.some((home) => this.#watch.wasLate(home, sinceMs, failedMs, lateMs)) ?? false
  }

  /** The answer of the store, or undefined when it is unavailable. `partition`: where the call goes, if to one. */
  async ask<T>(
    operation: string,
    partition: number | undefined,
    call: () => Promise<T>,
  ): Promise<{ answer: T } | undefined> {
    while (this.#pause !== undefined) await this.#pause
    this.#underWay += 1
    const period = this.#period()
    const beganMs = performance.now()
    this.counts[operation] = (this.counts[operation] ?? 0) + 1
    try {
      return { answer: await call() }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) this.violations.push(`${operation}: ${sentenceOf(error)}`)
      // A call that began before a fault meets it.
      const met = period.partitions.size > 0 ? period : this.#period()
      const afterMs = performance.now() - met.beganMs
      this.failures.push({ operation, partition, period: met, afterMs, reason: sentenceOf(error) })
      return undefined
    } finally {
      this.#underWay -= 1
      if (partition !== undefined) this.longestMs = Math.max(this.longestMs, performance.now() - beganMs)
    }
  }

  /** Notes what a session's record has that cannot be. */
  check(session: ChaosSession, record: SessionRecord | undefined, expected: ChaosExpectation): void {
    for (const problem of session.problemsOf(record, expected)) this.violations.push(`${session.model} ${problem}`)
    if (record !== undefined && expected.wasDeleted) this.undeleted.add(session)
  }

  /**
   * After a fault: what was answered and is not there any more went with a primary, and is not expected from now on. No call
   * is under way meanwhile.
   */
  async settle(store: Pick<SessionStore & RemovalQueue, 'get' | 'knownArtefacts'>): Promise<void> {
    let goOn = (): void => {}
    this.#pause = new Promise((resolve) => {
      goOn = resolve
    })
    try {
      await eventually(async () => this.#underWay === 0)
      const settleSession = async (session: ChaosSession): Promise<void> => {
        const record = await store.get(session)
        this.check(session, record, session.expected())
        session.settle(record)
      }
      await Promise.all(this.sessions.map(settleSession))
      const announced = [...this.artefacts.values()].filter(
        ({ id, isAnnounced }) => isAnnounced && !this.claimed.has(id),
      )
      const known = await store.knownArtefacts(announced.map(({ id }) => id))
      for (const artefact of announced.filter(({ id }) => !known.has(id))) {
        artefact.isAnnounced = false
        this.orphans += 1
      }
    } finally {
      this.#pause = undefined
      goOn()
    }
  }

  /** Waits for replicas, and from then on expects what was answered before. */
  async secure(untilReplicasHaveAll: () => Promise<void>): Promise<void> {
    const answered = this.sessions.map((session) => [session, session.answered()] as const)
    const announced = [...this.artefacts.values()].filter(({ isAnnounced }) => isAnnounced)
    await untilReplicasHaveAll()
    for (const [session, state] of answered) session.secured = state
    for (const artefact of announced) artefact.isSecured = true
  }

  #period(): ChaosPeriod {
    const period = this.periods.at(-1)
    if (period === undefined) throw new Error('no period')
    return period
  }
}
