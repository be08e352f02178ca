import type { TraceRequest } from '../../../../playground/replay/trace-request.ts'

/** A request whose prompt fills its blocks, but for what the test says. */
export const traceRequest = (blocks: readonly number[], sketch: Partial<TraceRequest> = {}): TraceRequest => ({
  timestampMs: 0,
  inputTokens: blocks.length * 512,
  outputTokens: 0,
  blocks,
  ...sketch,
})

/** As if it were read from a file. */
export async function* traceOf(requests: readonly TraceRequest[]): AsyncGenerator<TraceRequest, void, undefined> {
  yield* requests
}
