/** Where an engine's batches of events go once their order is known. */
export interface SequenceSink<Batch> {
  apply(batch: Batch): void
  /** What was applied so far is void: a new connection begins, or something between it and what follows is lost for good. */
  forget(why: 'new-connection' | 'lost'): void
  /** Asks the engine for what it published from this number on. Answered by `replayed` and `replayEnded`. Replaces a replay under way. */
  ask(from: number): void
}

/**
 * Brings one source's numbered batches into their order. A connection begins with a replay from 0, because a subscriber hears nothing of what
 * was published before it came. A batch that is missing, or that cannot be read, is asked for again; until it has come, nothing counts. What
 * cannot be had again voids everything before it.
 */
export interface EventSequence<Batch> {
  /** Whether everything published since the engine's start, or since the last `forget`, was applied, as far as can be known. */
  readonly live: boolean
  connected(): void
  disconnected(): void
  /** A batch from the subscription; undefined: it could not be read. */
  received(sequence: number, batch: Batch | undefined): void
  replayed(sequence: number, batch: Batch | undefined): void
  replayEnded(how: 'complete' | 'failed'): void
  /** Asks whether something was published last that never arrived: no later batch would tell. */
  checkTail(): void
  /** Something arrived that has no number: it may have been the next batch. */
  doubt(): void
}

export interface EventSequenceOptions {
  /** Whether the engine can be asked for batches again. */
  readonly canReplay: boolean
  /** Batches kept while a replay runs. Those beyond it are asked for again. */
  readonly maxHeld: number
}

interface Held<Batch> {
  readonly sequence: number
  readonly batch: Batch
}

export const createEventSequence = <Batch>(
  sink: SequenceSink<Batch>,
  { canReplay, maxHeld }: EventSequenceOptions,
): EventSequence<Batch> => {
  let phase: 'away' | 'behind' | 'live' = 'away'
  /** The number of the next batch; undefined: whatever comes first. */
  let next: number | undefined
  /** The highest number that the subscription brought over this connection. */
  let lastReceived = -1
  let held: Held<Batch>[] = []
  let asked: { readonly from: number; readonly forGap: boolean } | undefined

  const apply = ({ sequence, batch }: Held<Batch>): void => {
    next = sequence + 1
    sink.apply(batch)
  }

  const ask = (from: number, why: { readonly forGap: boolean }): void => {
    asked = { from, forGap: why.forGap }
    sink.ask(from)
  }

  /** Gives up what is missing and goes on with the unbroken run of batches that came last. */
  const skip = (): void => {
    sink.forget('lost')
    let start = held.length
    let expected = lastReceived
    while (start > 0 && held[start - 1]?.sequence === expected) {
      start -= 1
      expected -= 1
    }
    const run = held.slice(start)
    held = []
    for (const item of run) apply(item)
    next = lastReceived < 0 ? undefined : lastReceived + 1
    phase = 'live'
  }

  const begin = (): void => {
    sink.forget('new-connection')
    held = []
    lastReceived = -1
    asked = undefined
    if (canReplay) {
      phase = 'behind'
      next = 0
      ask(0, { forGap: true })
    } else {
      phase = 'live'
      next = undefined
    }
  }

  const hold = (item: Held<Batch>): void => {
    if (held.length < maxHeld) held.push(item)
  }

  const missed = (): void => {
    if (!canReplay) {
      skip()
      return
    }
    phase = 'behind'
    if (asked === undefined) ask(next ?? 0, { forGap: true })
  }

  const drain = (): void => {
    const waiting = held
    held = []
    for (const item of waiting) {
      if (next === undefined || item.sequence === next) apply(item)
      else if (item.sequence > next) held.push(item)
    }
  }

  return {
    get live() {
      return phase === 'live'
    },
    connected: begin,
    disconnected: () => {
      phase = 'away'
      held = []
      asked = undefined
    },
    received: (sequence, batch) => {
      if (phase === 'away') return
      // Over one connection numbers only rise: these are another engine's, and its end was not noticed yet.
      if (sequence <= lastReceived) begin()
      lastReceived = sequence
      if (phase === 'behind') {
        if (batch !== undefined) hold({ sequence, batch })
        return
      }
      // A replay was faster than the subscription.
      if (next !== undefined && sequence < next) return
      if (batch !== undefined && (next === undefined || sequence === next)) return apply({ sequence, batch })
      if (batch !== undefined) hold({ sequence, batch })
      missed()
    },
    replayed: (sequence, batch) => {
      if (phase === 'away' || batch === undefined) return
      if (next !== undefined && sequence < next) return
      // The engine's own buffer reaches back no further.
      if (next !== undefined && sequence > next) sink.forget('lost')
      apply({ sequence, batch })
    },
    replayEnded: (how) => {
      const answered = asked
      asked = undefined
      if (phase !== 'behind') return
      drain()
      const complete = how === 'complete' && next !== undefined && next > lastReceived
      if (complete) {
        phase = 'live'
        return
      }
      const mayAskAgain =
        answered !== undefined && (!answered.forGap || (how === 'complete' && answered.from < (next ?? 0)))
      if (mayAskAgain) ask(next ?? 0, { forGap: true })
      else skip()
    },
    checkTail: () => {
      if (phase === 'live' && canReplay && asked === undefined && next !== undefined) ask(next, { forGap: false })
    },
    doubt: () => {
      if (phase !== 'live') return
      if (!canReplay) skip()
      else if (asked === undefined && next !== undefined) ask(next, { forGap: false })
    },
  }
}
