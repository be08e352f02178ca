import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createSlotScheduler, type SlotScheduler } from '../../../../playground/engine/slot-scheduler.ts'

interface Task {
  readonly granted: () => number | undefined
  readonly isAborted: () => boolean
  readonly abort: () => void
  readonly release: () => void
}

/** A task that keeps its slot until it is released. */
function ask(scheduler: SlotScheduler, slotId?: number): Task {
  const leaving = new AbortController()
  const reason = new Error('left')
  let granted: number | undefined
  let isAborted = false
  let release = (): void => {}
  const request = { slotId, signal: leaving.signal, choose: (idleIds: readonly number[]) => idleIds.at(-1) ?? -1 }
  const work = (id: number): Promise<void> => {
    granted = id
    return new Promise((resolve) => {
      release = resolve
    })
  }
  scheduler.run(request, work).catch((error: unknown) => {
    isAborted = error === reason
  })
  return {
    granted: () => granted,
    isAborted: () => isAborted,
    abort: () => leaving.abort(reason),
    release: () => release(),
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the slot scheduler', () => {
  test('lets the task choose among idle slots', async () => {
    const scheduler = createSlotScheduler(3)
    const tasks = [ask(scheduler), ask(scheduler), ask(scheduler)]
    await settled()
    expect(tasks.map((task) => task.granted())).toEqual([2, 1, 0])
    expect(scheduler.waiting()).toBe(0)
  })

  test('grants in order of arrival', async () => {
    const scheduler = createSlotScheduler(1)
    const [first, second, third] = [ask(scheduler), ask(scheduler), ask(scheduler)]
    await settled()
    first.release()
    await settled()
    expect([second.granted(), third.granted()]).toEqual([0, undefined])
  })

  test('keeps a pinned task for its slot and lets others pass it', async () => {
    const scheduler = createSlotScheduler(2)
    const holder = ask(scheduler, 0)
    const pinned = ask(scheduler, 0)
    const free = ask(scheduler)
    await settled()
    expect([pinned.granted(), free.granted()]).toEqual([undefined, 1])
    free.release()
    await settled()
    expect(pinned.granted()).toBeUndefined()
    holder.release()
    await settled()
    expect(pinned.granted()).toBe(0)
  })

  test('grants nothing to a task that had left before', async () => {
    const scheduler = createSlotScheduler(1)
    const request = { slotId: undefined, signal: AbortSignal.abort(new Error('left')), choose: () => 0 }
    await expect(scheduler.run(request, async () => 'ran')).rejects.toThrow('left')
  })

  test('resolves to the result of the work, and a slot is free again after work that failed', async () => {
    const scheduler = createSlotScheduler(1)
    const request = { slotId: undefined, signal: new AbortController().signal, choose: () => 0 }
    await expect(scheduler.run(request, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    expect(scheduler.isBusy(0)).toBe(false)
    expect(await scheduler.run(request, async (slotId) => `ran in ${slotId}`)).toBe('ran in 0')
  })

  test('never gives a slot to two tasks, and every waiting task its turn, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('ask' as const), slotId: fc.option(fc.nat(2), { nil: undefined }) }),
      fc.record({ kind: fc.constantFrom('release' as const, 'abort' as const), index: fc.nat(20) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const scheduler = createSlotScheduler(3)
        const tasks: Task[] = []
        const released = new Set<Task>()
        const holders = () => tasks.filter((task) => task.granted() !== undefined && !released.has(task))
        const release = (task: Task) => {
          if (task.granted() !== undefined) released.add(task)
          task.release()
        }
        for (const action of steps) {
          if (action.kind === 'ask') tasks.push(ask(scheduler, action.slotId))
          else if (action.kind === 'abort') tasks[action.index]?.abort()
          else tasks.slice(action.index, action.index + 1).forEach(release)
          await settled()
          const held = holders().map((task) => task.granted())
          expect(new Set(held).size).toBe(held.length)
        }
        while (holders().length > 0) {
          holders().forEach(release)
          await settled()
        }
        expect(scheduler.waiting()).toBe(0)
        expect(tasks.every((task) => task.granted() !== undefined || task.isAborted())).toBe(true)
      }),
    )
  })
})
