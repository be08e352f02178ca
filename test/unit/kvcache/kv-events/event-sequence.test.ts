import { describe, expect, test } from '@jest/globals'
import { createEventSequence, type EventSequence } from '../../../../src/kvcache/kv-events/event-sequence.ts'

/** A name, what happens in short (`received 2 c`), and what the sequence does (`ask 1`, `apply c`), ending in `live` if it is. */
type Story = [name: string, steps: string, effects: string]

type Call = (sequence: EventSequence<string>, number: number, batch: string | undefined) => void

const calls: Readonly<Record<string, Call>> = {
  connected: (sequence) => sequence.connected(),
  disconnected: (sequence) => sequence.disconnected(),
  received: (sequence, number, batch) => sequence.received(number, batch),
  replayed: (sequence, number, batch) => sequence.replayed(number, batch),
  complete: (sequence) => sequence.replayEnded('complete'),
  failed: (sequence) => sequence.replayEnded('failed'),
  'check-tail': (sequence) => sequence.checkTail(),
  doubt: (sequence) => sequence.doubt(),
}

const take = (sequence: EventSequence<string>, step: string): void => {
  const [name = '', number, batch] = step.split(' ')
  const call = calls[name]
  if (call === undefined) throw new Error(`unknown step: ${step}`)
  call(sequence, Number(number), batch === 'damaged' ? undefined : batch)
}

const play = (story: string, options: { readonly canReplay: boolean; readonly maxHeld: number }): string => {
  let effects: string[] = []
  const sequence = createEventSequence<string>(
    {
      apply: (batch) => effects.push(`apply ${batch}`),
      forget: (why) => effects.push(`forget ${why}`),
      ask: (from) => effects.push(`ask ${from}`),
    },
    options,
  )
  for (const step of story.split(', ')) {
    if (step !== 'settled') take(sequence, step)
    else {
      for (const first of ['connected', 'complete', 'received 0 a']) take(sequence, first)
      effects = []
    }
  }
  return [...effects, ...(sequence.live ? ['live'] : [])].join(', ')
}

/** `settled`: connected, nothing published before, batch 0 received. */
describe('an event sequence', () => {
  test.each<Story>([
    ['is not live before the connection is made', 'received 0 a', ''],
    ['is not live before the past is replayed', 'connected', 'forget new-connection, ask 0'],
    [
      'applies replayed batches, then those received meanwhile, each once',
      'connected, received 1 b, received 2 c, replayed 0 a, replayed 1 b, complete',
      'forget new-connection, ask 0, apply a, apply b, apply c, live',
    ],
    [
      'applies a batch that follows the replay',
      'connected, complete, received 0 a',
      'forget new-connection, ask 0, apply a, live',
    ],
    [
      'drops a received batch that was replayed before',
      'connected, replayed 0 a, complete, received 0 a, received 1 b',
      'forget new-connection, ask 0, apply a, apply b, live',
    ],
    [
      'begins with the oldest batch that the engine still has',
      'connected, replayed 7 h, complete',
      'forget new-connection, ask 0, forget lost, apply h, live',
    ],
    ['is not live while a gap is open', 'settled, received 2 c', 'ask 1'],
    [
      'closes a gap with a replay from the first missing number',
      'settled, received 2 c, received 3 d, replayed 1 b, replayed 2 c, complete',
      'ask 1, apply b, apply c, apply d, live',
    ],
    [
      'forgets everything before a gap that the replay does not close',
      'settled, received 2 c, received 3 d, complete',
      'ask 1, forget lost, apply c, apply d, live',
    ],
    [
      'forgets everything before a gap whose replay failed',
      'settled, received 2 c, failed',
      'ask 1, forget lost, apply c, live',
    ],
    [
      'asks again when a second gap opens during a replay',
      'settled, received 2 c, received 4 e, replayed 1 b, complete',
      'ask 1, apply b, apply c, ask 3',
    ],
    [
      'asks again for a batch that cannot be decoded',
      'settled, received 1 damaged, replayed 1 b, complete',
      'ask 1, apply b, live',
    ],
    [
      'skips a batch that cannot be decoded a second time either',
      'settled, received 1 damaged, replayed 1 damaged, complete, received 2 c',
      'ask 1, forget lost, apply c, live',
    ],
    [
      'starts over when the numbers fall',
      'settled, received 0 A, replayed 0 A, complete',
      'forget new-connection, ask 0, apply A, live',
    ],
    [
      'is not live after a disconnect, and ignores what comes late',
      'settled, disconnected, received 1 b, replayed 1 b, complete',
      '',
    ],
    ['starts over with a new connection', 'settled, disconnected, connected', 'forget new-connection, ask 0'],
    [
      'forgets the numbers of an earlier connection',
      'settled, received 1 b, disconnected, connected, replayed 0 A, complete',
      'apply b, forget new-connection, ask 0, apply A, live',
    ],
    [
      'finds a lost last batch by a check of the tail, and stays live meanwhile',
      'settled, check-tail, replayed 1 b, complete, received 2 c',
      'ask 1, apply b, apply c, live',
    ],
    ['stays live after a check of the tail that failed', 'settled, check-tail, failed', 'ask 1, live'],
    [
      'asks for a gap after a check of the tail that was under way',
      'settled, check-tail, received 2 c, complete',
      'ask 1, ask 1',
    ],
    ['checks the tail when a message without a number arrives', 'settled, doubt, complete', 'ask 1, live'],
    [
      'begins with the first received batch when the replay fails',
      'connected, failed, received 9 j',
      'forget new-connection, ask 0, forget lost, apply j, live',
    ],
  ])('%s', (_name, steps, effects) => {
    expect(play(steps, { canReplay: true, maxHeld: 100 })).toBe(effects)
  })

  test('asks again for a batch that did not fit into the buffer', () => {
    const steps = 'settled, received 2 c, received 3 d, replayed 1 b, complete'
    expect(play(steps, { canReplay: true, maxHeld: 1 })).toBe('ask 1, apply b, apply c, ask 3')
  })

  test.each<Story>([
    [
      'forgets everything before a gap',
      'connected, received 4 e, received 6 g',
      'forget new-connection, apply e, forget lost, apply g, live',
    ],
    [
      'starts over when the numbers fall',
      'connected, received 5 f, received 0 A',
      'forget new-connection, apply f, forget new-connection, apply A, live',
    ],
    [
      'forgets everything when a message without a number arrives',
      'connected, received 0 a, doubt, received 1 b',
      'forget new-connection, apply a, forget lost, apply b, live',
    ],
  ])('without replay %s', (_name, steps, effects) => {
    expect(play(steps, { canReplay: false, maxHeld: 100 })).toBe(effects)
  })
})
