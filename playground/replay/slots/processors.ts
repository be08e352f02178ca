import type { VirtualTime } from '../virtual-time.ts'

export type Processors = ReturnType<typeof createProcessors>

interface Work {
  leftMs: number
  readonly done: () => void
}

/** Shorter than any work, and longer than what a clock that counts from 1970 cannot tell apart. */
const doneMs = 0.001

/** Processors that pods share: `count` of them compute at full speed at a time; more share it evenly. */
export const createProcessors = (time: Pick<VirtualTime, 'nowMs' | 'startTimer'>, count: number) => {
  const works = new Set<Work>()
  let updatedMs = 0
  let stopTimer = (): void => {}
  const speed = (): number => Math.min(1, count / works.size)

  const advance = (): void => {
    const passedMs = (time.nowMs() - updatedMs) * speed()
    updatedMs = time.nowMs()
    for (const work of works) work.leftMs -= passedMs
  }

  const setTimer = (): void => {
    stopTimer()
    if (works.size === 0) return
    const leftMs = [...works].reduce((least, work) => Math.min(least, work.leftMs), Number.POSITIVE_INFINITY)
    stopTimer = time.startTimer(finish, Math.max(0, leftMs / speed()))
  }

  const finish = (): void => {
    advance()
    const finished = [...works].filter(({ leftMs }) => leftMs < doneMs)
    for (const work of finished) works.delete(work)
    setTimer()
    for (const { done } of finished) done()
  }

  return {
    /** Works for `workMs` on one of them, longer where they are shared. */
    compute: (workMs: number, done: () => void): void => {
      advance()
      works.add({ leftMs: workMs, done })
      setTimer()
    },
  }
}
