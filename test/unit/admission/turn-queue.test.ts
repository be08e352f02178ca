import { describe, expect, test } from '@jest/globals'
import type { QueuedWork } from '../../../src/admission/queued-work.ts'
import { createTurnQueue, type Settlement } from '../../../src/admission/turn-queue.ts'

const [podA, podB] = ['10.0.0.1:8000', '10.0.0.2:8000']

/** A queue on a clock that stands still, before pods with so much room for turns. */
const setUp = (given: { readonly maxWaiting?: number; readonly pods?: readonly string[] } = {}) => {
  const { maxWaiting = 10, pods = [podA] } = given
  const clock = { nowMs: 0 }
  const settled: (readonly [string, Settlement])[] = []
  const queue = createTurnQueue({
    maxWaiting: () => maxWaiting,
    leaseMs: 60_000,
    nowMs: () => clock.nowMs,
    observer: { settled: (id, settlement) => void settled.push([id, settlement]), leaseExpired: () => {} },
  })
  const work = (id: string, more: Partial<QueuedWork> = {}): QueuedWork => {
    const { isShort = false } = more
    clock.nowMs += 1
    return {
      id,
      priority: 1,
      tenant: 'tenant',
      isShort,
      place: (vacancies) => {
        const pod = pods.find((candidate) => vacancies.hasRoom(candidate, () => isShort))
        return pod === undefined ? undefined : { pod, needs: [] }
      },
      arrivedMs: clock.nowMs,
      resourcesWaitMs: 1_000,
      roomWaitMs: 10_000,
      ...more,
    }
  }
  /** Works that tried every pod and wait now, in the order in which they came. */
  const waiting = (...works: readonly QueuedWork[]) => {
    for (const each of works) {
      let answer = queue.request(each)
      while (answer !== 'waiting' && answer.kind === 'admitted' && answer.pod !== undefined && answer.hasRoom)
        answer = queue.noRoom(each, answer.pod, each.isShort)
      expect(answer).toBe('waiting')
    }
  }
  const started = () => settled.flatMap(([id, { kind }]) => (kind === 'admitted' ? id : []))
  return { queue, clock, settled, work, waiting, started }
}

const roomAt = (pod: string) => ({ kind: 'admitted', pod, hasRoom: true })

describe('work that finds no room', () => {
  test('tries another pod at once, then waits', () => {
    const { queue, work } = setUp({ pods: [podA, podB] })
    const first = work('a')
    expect(queue.request(first)).toEqual(roomAt(podA))
    expect(queue.noRoom(first, podA, false)).toEqual(roomAt(podB))
    expect(queue.noRoom(first, podB, false)).toBe('waiting')
  })

  test.each([
    { name: 'long turns leave a full pod to short ones', isShort: true, expected: roomAt(podA) },
    { name: 'long turns take a pod for full that had none for one of them', isShort: false, expected: 'waiting' },
  ])('$name', ({ isShort, expected }) => {
    const { queue, work, waiting } = setUp()
    waiting(work('before'))
    expect(queue.request(work('next', { isShort }))).toEqual(expected)
  })

  test('tries one at a time when room is reported, and the next when that one has it', () => {
    const { queue, work, waiting, started } = setUp()
    waiting(work('a'), work('b'), work('c'))
    queue.roomAt(podA)
    expect(started()).toEqual(['a'])
    queue.roomAt(podA)
    expect(started()).toEqual(['a', 'b'])
  })

  test('keeps its place when it finds none again', () => {
    const { queue, work, waiting, started } = setUp()
    const first = work('a')
    waiting(first, work('b'))
    queue.roomAt(podA)
    expect(queue.noRoom(first, podA, false)).toBe('waiting')
    queue.roomAt(podA)
    expect(started()).toEqual(['a', 'a'])
  })

  test.each([
    { name: 'short before long', first: {}, second: { isShort: true } },
    { name: 'tenants in turn', first: {}, second: { tenant: 'another' } },
  ])('waits in the order of $name', ({ first, second }) => {
    const { queue, work, waiting, started } = setUp()
    const served = work('served')
    queue.request(served)
    waiting(work('first', first), work('second', second))
    queue.roomAt(podA)
    expect(started()).toEqual(['second'])
  })

  test('if it is long, is passed by some short work, and not for ever', () => {
    const { queue, work, waiting, started } = setUp({ maxWaiting: 100 })
    waiting(work('long'))
    waiting(...Array.from({ length: 20 }, (_, index) => work(`short ${index}`, { isShort: true })))
    for (let room = 0; room < 21; room += 1) queue.roomAt(podA)
    expect(started().indexOf('long')).toBe(2)
  })

  test('goes on without room after its time', () => {
    const { queue, clock, work, waiting, settled } = setUp()
    const late = work('a')
    waiting(late)
    clock.nowMs = 9_900
    queue.tick()
    expect(queue.noRoom(late, podA, false)).toBe('waiting')
    clock.nowMs = 10_001
    queue.tick()
    expect(settled.at(-1)).toEqual(['a', { kind: 'admitted', pod: podA, hasRoom: false }])
  })

  test('goes on without room when too much work waits, the last in the order first', () => {
    const { queue, work, waiting, settled } = setUp({ maxWaiting: 1 })
    waiting(work('long'))
    const short = work('short', { isShort: true })
    expect(queue.request(short)).toEqual(roomAt(podA))
    expect(queue.noRoom(short, podA, true)).toBe('waiting')
    expect(settled).toEqual([['long', { kind: 'admitted', pod: podA, hasRoom: false }]])
  })

  test('leaves with its client, and takes nothing', () => {
    const { queue, work, waiting, settled, started } = setUp()
    waiting(work('a'), work('b'))
    queue.leave('a')
    expect(settled).toEqual([['a', { kind: 'left' }]])
    queue.roomAt(podA)
    expect(started()).toEqual(['b'])
  })

  test('may leave room to others for some time, and is asked again after it', () => {
    const { queue, clock, work, waiting, started } = setUp()
    const holdsOutUntilMs = 1_000
    const place: QueuedWork['place'] = (vacancies) =>
      vacancies.hasRoom(podB, () => false) && clock.nowMs >= holdsOutUntilMs ? { pod: podB, needs: [] } : undefined
    expect(queue.request(work('patient', { place, holdsOutUntilMs }))).toBe('waiting')
    waiting(work('other'))
    for (const nowMs of [500, 999, 1_000]) {
      expect(started()).not.toContain('patient')
      clock.nowMs = nowMs
      queue.tick()
    }
    expect(started()).toContain('patient')
  })
})

describe('much work that waits', () => {
  /** Twenty works, each of which takes a millisecond to say that no pod suits it, behind one that would take any. */
  const setUpSlow = () => {
    const bench = setUp({ maxWaiting: 100 })
    const asked: string[] = []
    const slow = (id: string) =>
      bench.work(id, {
        place: () => {
          bench.clock.nowMs += 1
          asked.push(id)
          return undefined
        },
      })
    bench.waiting(bench.work('before'))
    const works = Array.from({ length: 20 }, (_, index) => slow(`work ${index}`))
    bench.waiting(...works)
    asked.length = 0
    return { ...bench, works, asked }
  }

  test('is asked for some milliseconds at a time, each work once and in order, others only afterwards', () => {
    const { queue, clock, works, asked, work, started } = setUpSlow()
    const calls: number[] = []
    const count = (call: () => void) => {
      const before = asked.length
      call()
      calls.push(asked.length - before)
    }
    count(() => queue.roomAt(podA))
    // 'before' wants this pod, and is the first.
    expect([started(), calls]).toEqual([['before'], [0]])
    queue.roomAt(podA)
    expect(queue.request(work('late'))).toBe('waiting')
    while (asked.length < works.length) count(() => queue.tick())
    expect(asked).toEqual(works.map(({ id }) => id))
    expect(Math.max(...calls)).toBeLessThanOrEqual(3)
    expect(started()).toEqual(['before', 'late'])
    expect(queue.nextTickMs()).toBeGreaterThan(clock.nowMs)
  })

  test('is not asked where nothing came free', () => {
    const { queue, asked } = setUpSlow()
    queue.roomAt(podB)
    expect(asked).toEqual([])
  })

  test('looks for room at some of many pods at a time', () => {
    const { queue, clock, work, waiting, started } = setUp({
      pods: Array.from({ length: 10 }, (_, pod) => `pod ${pod}`),
    })
    waiting(...Array.from({ length: 10 }, (_, index) => work(`work ${index}`)))
    const counts = Array.from({ length: 3 }, () => {
      clock.nowMs = queue.nextTickMs() ?? 0
      queue.tick()
      return started().length
    })
    expect(counts).toEqual([4, 8, 10])
  })

  test('stops waiting at its time, some at a time', () => {
    const { queue, clock, settled } = setUpSlow()
    clock.nowMs = 20_000
    queue.tick()
    expect(settled.length).toBeLessThan(5)
    for (let tick = 0; tick < 40; tick += 1) queue.tick()
    expect(settled.map(([id]) => id)).toHaveLength(21)
  })
})

test('of work that waits for resources, that is asked which may have what came free', () => {
  const { queue, work } = setUp({ maxWaiting: 100 })
  const asked: string[] = []
  const place = (id: string) => () => {
    asked.push(id)
    return { pod: podA, needs: [{ pool: 'R', count: 1, capacity: 1 }] }
  }
  const works = ['a', 'b', 'c', 'd'].map((id) => work(id, { place: place(id) }))
  for (const each of works) queue.request(each)
  asked.length = 0
  queue.release('a')
  expect(asked).toEqual(['b'])
})
