import { describe, expect, test } from '@jest/globals'
import { createEventSequence, type EventSequence } from '../../../../src/kvcache/kv-events/event-sequence.ts'

interface Recorded {
  readonly sequence: EventSequence<string>
  /** What reached the sink, in short: `apply a`, `ask 3`, `forget lost`. */
  readonly told: readonly string[]
}

const record = (options: { readonly canReplay: boolean; readonly maxHeld?: number }): Recorded => {
  const told: string[] = []
  const sequence = createEventSequence<string>(
    {
      apply: (batch) => told.push(`apply ${batch}`),
      forget: (why) => told.push(`forget ${why}`),
      ask: (from) => told.push(`ask ${from}`),
    },
    { canReplay: options.canReplay, maxHeld: options.maxHeld ?? 100 },
  )
  return { sequence, told }
}

interface Row {
  readonly name: string
  readonly canReplay?: boolean
  readonly maxHeld?: number
  readonly steps: (sequence: EventSequence<string>) => void
  readonly told: readonly string[]
  readonly live: boolean
}

/** Connected, nothing published before, batch 0 received. */
const settle = (sequence: EventSequence<string>): void => {
  sequence.connected()
  sequence.replayEnded('complete')
  sequence.received(0, 'a')
}
const settled = ['forget new-connection', 'ask 0', 'apply a']

describe('event sequence', () => {
  test.each<Row>([
    { name: 'is not live before a connection stands', steps: (s) => s.received(0, 'a'), told: [], live: false },
    {
      name: 'is not live before the past was replayed',
      steps: (s) => s.connected(),
      told: ['forget new-connection', 'ask 0'],
      live: false,
    },
    {
      name: 'applies the past, then what came meanwhile, each once',
      steps: (s) => {
        s.connected()
        s.received(1, 'b')
        s.received(2, 'c')
        s.replayed(0, 'a')
        s.replayed(1, 'b')
        s.replayEnded('complete')
      },
      told: ['forget new-connection', 'ask 0', 'apply a', 'apply b', 'apply c'],
      live: true,
    },
    { name: 'applies in order', steps: settle, told: settled, live: true },
    {
      name: 'drops what the replay brought before the subscription',
      steps: (s) => {
        s.connected()
        s.replayed(0, 'a')
        s.replayEnded('complete')
        s.received(0, 'a')
        s.received(1, 'b')
      },
      told: ['forget new-connection', 'ask 0', 'apply a', 'apply b'],
      live: true,
    },
    {
      name: 'begins in the middle where the engine has forgotten the beginning',
      steps: (s) => {
        s.connected()
        s.replayed(7, 'h')
        s.replayEnded('complete')
      },
      told: ['forget new-connection', 'ask 0', 'forget lost', 'apply h'],
      live: true,
    },
    {
      name: 'is not live while a gap is open',
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
      },
      told: [...settled, 'ask 1'],
      live: false,
    },
    {
      name: 'closes a gap by a replay from the first missing number',
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
        s.received(3, 'd')
        s.replayed(1, 'b')
        s.replayed(2, 'c')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'apply b', 'apply c', 'apply d'],
      live: true,
    },
    {
      name: 'forgets everything before a gap that the engine cannot close',
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
        s.received(3, 'd')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'forget lost', 'apply c', 'apply d'],
      live: true,
    },
    {
      name: 'forgets everything before a gap whose replay failed',
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
        s.replayEnded('failed')
      },
      told: [...settled, 'ask 1', 'forget lost', 'apply c'],
      live: true,
    },
    {
      name: 'forgets at a gap where nothing can be asked for',
      canReplay: false,
      steps: (s) => {
        s.connected()
        s.received(4, 'e')
        s.received(6, 'g')
      },
      told: ['forget new-connection', 'apply e', 'forget lost', 'apply g'],
      live: true,
    },
    {
      name: 'asks again when a replay closed one gap and another one opened',
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
        s.received(4, 'e')
        s.replayed(1, 'b')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'apply b', 'apply c', 'ask 3'],
      live: false,
    },
    {
      name: 'asks again for what there was no room to keep',
      maxHeld: 1,
      steps: (s) => {
        settle(s)
        s.received(2, 'c')
        s.received(3, 'd')
        s.replayed(1, 'b')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'apply b', 'apply c', 'ask 3'],
      live: false,
    },
    {
      name: 'asks again for a batch that cannot be read',
      steps: (s) => {
        settle(s)
        s.received(1, undefined)
        s.replayed(1, 'b')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'apply b'],
      live: true,
    },
    {
      name: 'goes on behind a batch that cannot be read the second time either',
      steps: (s) => {
        settle(s)
        s.received(1, undefined)
        s.replayed(1, undefined)
        s.replayEnded('complete')
        s.received(2, 'c')
      },
      told: [...settled, 'ask 1', 'forget lost', 'apply c'],
      live: true,
    },
    {
      name: 'begins anew when numbers fall',
      steps: (s) => {
        settle(s)
        s.received(0, 'A')
        s.replayed(0, 'A')
        s.replayEnded('complete')
      },
      told: [...settled, 'forget new-connection', 'ask 0', 'apply A'],
      live: true,
    },
    {
      name: 'begins anew when numbers fall and nothing can be asked for',
      canReplay: false,
      steps: (s) => {
        s.connected()
        s.received(5, 'f')
        s.received(0, 'A')
      },
      told: ['forget new-connection', 'apply f', 'forget new-connection', 'apply A'],
      live: true,
    },
    {
      name: 'is not live without its connection',
      steps: (s) => {
        settle(s)
        s.disconnected()
        s.received(1, 'b')
        s.replayed(1, 'b')
        s.replayEnded('complete')
      },
      told: settled,
      live: false,
    },
    {
      name: 'begins anew with a new connection',
      steps: (s) => {
        settle(s)
        s.disconnected()
        s.connected()
      },
      told: [...settled, 'forget new-connection', 'ask 0'],
      live: false,
    },
    {
      name: 'expects nothing of an earlier connection',
      steps: (s) => {
        settle(s)
        s.received(1, 'b')
        s.disconnected()
        s.connected()
        s.replayed(0, 'A')
        s.replayEnded('complete')
      },
      told: [...settled, 'apply b', 'forget new-connection', 'ask 0', 'apply A'],
      live: true,
    },
    {
      name: 'finds a last batch that never arrived, and stays live meanwhile',
      steps: (s) => {
        settle(s)
        s.checkTail()
        s.replayed(1, 'b')
        s.replayEnded('complete')
        s.received(2, 'c')
      },
      told: [...settled, 'ask 1', 'apply b', 'apply c'],
      live: true,
    },
    {
      name: 'is none the worse for a look at the tail that failed',
      steps: (s) => {
        settle(s)
        s.checkTail()
        s.replayEnded('failed')
      },
      told: [...settled, 'ask 1'],
      live: true,
    },
    {
      name: 'asks for a gap itself after a look at the tail that was under way',
      steps: (s) => {
        settle(s)
        s.checkTail()
        s.received(2, 'c')
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1', 'ask 1'],
      live: false,
    },
    {
      name: 'looks at the tail when something without a number arrived',
      steps: (s) => {
        settle(s)
        s.doubt()
        s.replayEnded('complete')
      },
      told: [...settled, 'ask 1'],
      live: true,
    },
    {
      name: 'forgets when something without a number arrived and nothing can be asked for',
      canReplay: false,
      steps: (s) => {
        s.connected()
        s.received(0, 'a')
        s.doubt()
        s.received(1, 'b')
      },
      told: ['forget new-connection', 'apply a', 'forget lost', 'apply b'],
      live: true,
    },
    {
      name: 'takes whatever comes first when the past cannot be had',
      steps: (s) => {
        s.connected()
        s.replayEnded('failed')
        s.received(9, 'j')
      },
      told: ['forget new-connection', 'ask 0', 'forget lost', 'apply j'],
      live: true,
    },
  ])('$name', ({ canReplay = true, maxHeld, steps, told: expected, live }) => {
    const { sequence, told } = record({ canReplay, ...(maxHeld === undefined ? {} : { maxHeld }) })
    steps(sequence)
    expect(told).toEqual(expected)
    expect(sequence.live).toBe(live)
  })
})
