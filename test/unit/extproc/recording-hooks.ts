import type { Phase } from '../../../src/extproc/codec.ts'
import type { ProcessHooks } from '../../../src/extproc/process-stream.ts'

/** Hooks that record their calls. */
export const recordingHooks = () => {
  const faults: unknown[] = []
  const messages: { readonly phase: Phase; readonly milliseconds: number }[] = []
  const streams = { opened: 0, closed: 0 }
  const hooks: ProcessHooks = {
    streamOpened: () => {
      streams.opened++
    },
    streamClosed: () => {
      streams.closed++
    },
    message: (phase, milliseconds) => messages.push({ phase, milliseconds }),
    fault: (error) => faults.push(error),
  }
  return { hooks, faults, messages, streams }
}
