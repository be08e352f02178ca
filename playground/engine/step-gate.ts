// llama.cpp computes all sequences in one batch, and node-llama-cpp holds its lock for as long as any of them has work
// queued: with two answers running, saving a third sequence would wait until both have ended. The gate makes room
// between two steps.

/** Lets steps of computation run together, and exclusive work between them. */
export interface StepGate {
  /** Runs a short step beside other steps; waits while exclusive work runs or waits. */
  step<Result>(work: () => Promise<Result>): Promise<Result>
  /** Runs alone, as soon as the steps under way have ended; in order of arrival. */
  exclusive<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Creates a gate. */
export function createStepGate(): StepGate {
  const waitingSteps: (() => void)[] = []
  const waitingExclusive: (() => void)[] = []
  let runningSteps = 0
  let exclusiveRuns = false

  const admit = () => {
    if (exclusiveRuns) return
    const next = waitingExclusive[0]
    if (next === undefined) {
      for (const start of waitingSteps.splice(0)) {
        runningSteps += 1
        start()
      }
      return
    }
    if (runningSteps > 0) return
    waitingExclusive.shift()
    exclusiveRuns = true
    next()
  }

  return {
    async step(work) {
      await new Promise<void>((start) => {
        waitingSteps.push(start)
        admit()
      })
      try {
        return await work()
      } finally {
        runningSteps -= 1
        admit()
      }
    },
    async exclusive(work) {
      await new Promise<void>((start) => {
        waitingExclusive.push(start)
        admit()
      })
      try {
        return await work()
      } finally {
        exclusiveRuns = false
        admit()
      }
    },
  }
}
