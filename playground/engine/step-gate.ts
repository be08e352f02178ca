// llama.cpp computes all sequences in one batch, and node-llama-cpp holds its lock for as long as any of them has work
// queued: with two answers running, saving a third sequence would wait until both have ended. The gate makes room
// between two steps.

/** Lets steps of computation run together, and exclusive work between them, in order of arrival. */
export const createStepGate = () => {
  // None of these rejects.
  let lastExclusive: Promise<unknown> = Promise.resolve()
  const steps = new Set<Promise<unknown>>()
  return {
    /** Runs a short step beside other steps, after the exclusive work that arrived before. */
    step: <Result>(work: () => Promise<Result>): Promise<Result> => {
      const result = lastExclusive.then(work)
      const ended: Promise<unknown> = result.catch(() => undefined).finally(() => steps.delete(ended))
      steps.add(ended)
      return result
    },
    /** Runs alone, after all that arrived before. */
    exclusive: <Result>(work: () => Promise<Result>): Promise<Result> => {
      const result = Promise.all([lastExclusive, ...steps]).then(work)
      lastExclusive = result.catch(() => undefined)
      return result
    },
  }
}

export type StepGate = ReturnType<typeof createStepGate>
