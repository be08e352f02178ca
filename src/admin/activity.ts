import type { EndedTurnFacts, TurnOutcome } from '../context/context-events.ts'
import { type CacheHitStatus, hitIn, resultIn } from '../context/response-headers.ts'
import { computedTokensOf, type TokenUsage } from '../openai/usage.ts'
import type { SessionKey } from '../sessions/session-record.ts'
import { RecentTimes } from './recent-times.ts'
import { SessionTimelines, type TimelineEvent } from './session-timelines.ts'

const sampleMs = 5_000
const maxSamples = 120
const windowMs = 300_000
/** Kinds of names and pods are few; more of them are a mistake. */
const maxNames = 1_000

/** Turns with a session by where their KV was found, and prefill of their prompts, in a time. */
export interface Sample {
  turns: number
  gpu: number
  cpu: number
  store: number
  miss: number
  savedSeconds: number
  computedSeconds: number
}

interface PodActivity {
  turns: number
  hits: number
  loadsUnderWay: number
  readonly loads: RecentTimes
}

/** What this process saw of turns and sessions since its start, for the console. Bounded; a restart forgets it. */
export class Activity {
  readonly timelines = new SessionTimelines()
  readonly #nowMs: () => number
  readonly #sum = noTurns()
  readonly #turns = { completed: 0, failed: 0 }
  readonly #tokens = { cached: 0, computed: 0 }
  readonly #namedBy = new Map<string, number>()
  readonly #pods = new Map<string, PodActivity>()
  readonly #samples: { readonly atMs: number; readonly sample: Sample }[] = []
  readonly #ttft: Readonly<Record<'hit' | 'miss' | 'none', RecentTimes>>
  #hitsNotReused = 0
  #current: { readonly atMs: number; readonly sample: Sample }

  /** `nowMs`: time of day, milliseconds since 1970. */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
    this.#current = { atMs: nowMs(), sample: noTurns() }
    this.#ttft = { hit: this.#times(), miss: this.#times(), none: this.#times() }
  }

  sessionCreated(session: SessionKey): void {
    this.timelines.add(session, { at: this.#now(), kind: 'created' })
  }

  sessionDeleted(session: SessionKey): void {
    this.timelines.add(session, { at: this.#now(), kind: 'deleted' })
  }

  kvRemoved(session: SessionKey): void {
    this.timelines.add(session, { at: this.#now(), kind: 'removed' })
  }

  hitNotReused(): void {
    this.#hitsNotReused += 1
  }

  loadBegan(pod: string): void {
    this.#pod(pod).loadsUnderWay += 1
  }

  loadEnded(pod: string): void {
    this.#pod(pod).loadsUnderWay -= 1
  }

  turnEnded(outcome: TurnOutcome, usage: TokenUsage | undefined, turn: EndedTurnFacts): void {
    this.#turns[outcome === 'completed' ? 'completed' : 'failed'] += 1
    const hit = hitIn(turn.cacheStatus)
    const found = resultIn(turn.cacheStatus)
    if (outcome === 'completed' && turn.isStream === true && turn.ttfbMs !== undefined && found !== undefined)
      this.#ttft[found].add(turn.ttfbMs)
    if (turn.session === undefined) return
    this.#countPod(turn, hit)
    const name = turn.namedBy ?? 'id'
    if (this.#namedBy.has(name) || this.#namedBy.size < maxNames)
      this.#namedBy.set(name, (this.#namedBy.get(name) ?? 0) + 1)
    for (const sample of [this.#sum, this.#sample()]) {
      sample.turns += 1
      if (found !== 'none' && found !== undefined) sample[hit?.tier ?? 'miss'] += 1
      sample.savedSeconds += (turn.prefill?.savedMs ?? 0) / 1000
      sample.computedSeconds += (turn.prefill?.computedMs ?? 0) / 1000
    }
    this.#tokens.cached += usage?.cachedTokens ?? 0
    this.#tokens.computed += usage === undefined ? 0 : computedTokensOf(usage)
    this.timelines.add(turn.session, this.#eventOf(outcome, usage, { turn, hit }), name)
  }

  /** Counts since the start of the process. */
  totals() {
    const { gpu, cpu, store, miss, savedSeconds: saved, computedSeconds: computed } = this.#sum
    return {
      turns: { ...this.#turns },
      lookups: { gpu, cpu, store, miss },
      namedBy: Object.fromEntries(this.#namedBy),
      promptTokens: { ...this.#tokens },
      prefillSeconds: { saved, computed },
      hitsNotReused: this.#hitsNotReused,
    }
  }

  /** Time to first token of streams in the last five minutes. */
  ttftMs() {
    const { hit, miss, none } = this.#ttft
    return { hit: hit.percentiles(), miss: miss.percentiles(), none: none.percentiles() }
  }

  /** One for each 5 s of the last ten minutes, oldest first, without the one that is under way. */
  samples(): readonly ({ readonly at: string } & Sample)[] {
    this.#sample()
    return this.#samples.map(({ atMs, sample }) => ({ at: new Date(atMs).toISOString(), ...sample }))
  }

  /** What was seen of a pod. */
  pod(address: string) {
    const { turns, hits, loadsUnderWay, loads } = this.#pods.get(address) ?? this.#newPod()
    return { turns, hits, loadsUnderWay, loadMsP50: loads.percentiles()?.p50 ?? null }
  }

  #countPod({ pod }: EndedTurnFacts, hit: CacheHitStatus | undefined): void {
    const activity = this.#pod(pod)
    activity.turns += 1
    if (hit !== undefined) activity.hits += 1
    if (hit?.loadMs !== undefined) activity.loads.add(hit.loadMs)
  }

  #eventOf(
    outcome: TurnOutcome,
    usage: TokenUsage | undefined,
    { turn, hit }: { readonly turn: EndedTurnFacts; readonly hit: CacheHitStatus | undefined },
  ): TimelineEvent {
    const { pod, cacheStatus, waitedMs, offload, offloadMs, ttfbMs } = turn
    const { promptTokens, cachedTokens, outputTokens } = usage ?? {}
    const ttftMs = ttfbMs === undefined ? undefined : Math.round(ttfbMs)
    const facts = { pod, outcome, cacheStatus, waitedMs, offload, offloadMs, ttftMs }
    return { at: this.#now(), kind: 'turn', ...facts, ...hit, promptTokens, cachedTokens, outputTokens }
  }

  /** That of the present time, after those before it. */
  #sample(): Sample {
    const nowMs = this.#nowMs()
    // After a long time without a turn, only the last ones are of use.
    const skipped = Math.max(0, Math.floor((nowMs - this.#current.atMs) / sampleMs) - maxSamples - 1)
    this.#current = { atMs: this.#current.atMs + skipped * sampleMs, sample: this.#current.sample }
    while (nowMs - this.#current.atMs >= sampleMs) {
      this.#samples.push(this.#current)
      if (this.#samples.length > maxSamples) this.#samples.shift()
      this.#current = { atMs: this.#current.atMs + sampleMs, sample: noTurns() }
    }
    return this.#current.sample
  }

  #pod(address: string): PodActivity {
    const known = this.#pods.get(address)
    if (known !== undefined) return known
    const pod = this.#newPod()
    this.#pods.set(address, pod)
    const [oldest] = this.#pods.keys()
    if (this.#pods.size > maxNames && oldest !== undefined) this.#pods.delete(oldest)
    return pod
  }

  #newPod(): PodActivity {
    return { turns: 0, hits: 0, loadsUnderWay: 0, loads: this.#times() }
  }

  #times(): RecentTimes {
    return new RecentTimes({ windowMs, nowMs: this.#nowMs })
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString()
  }
}

const noTurns = (): Sample => ({
  turns: 0,
  gpu: 0,
  cpu: 0,
  store: 0,
  miss: 0,
  savedSeconds: 0,
  computedSeconds: 0,
})
