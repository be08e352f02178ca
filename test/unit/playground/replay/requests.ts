import type { TraceRequest } from '../../../../playground/replay/trace.ts'

/** A request whose prompt fills its blocks, but for what the test says. */
export const traceRequest = (blocks: readonly number[], sketch: Partial<TraceRequest> = {}): TraceRequest => ({
  timestampMs: 0,
  inputTokens: blocks.length * 512,
  outputTokens: 0,
  blocks,
  ...sketch,
})
