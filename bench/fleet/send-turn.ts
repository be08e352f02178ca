import {
  CompletionError,
  type CompletionRequest,
  type StreamedCompletion,
  streamCompletion,
} from '../stream-completion.ts'

/** What a client saw of one turn. */
export interface SentTurn {
  /** Undefined: the turn failed. */
  readonly ttftMs: number | undefined
  readonly totalMs: number
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly answerTokens: number
  /** The header `x-context-cache`; empty without one. */
  readonly cache: string
  readonly sessionId: string | undefined
  /** Undefined: the connection failed, or the turn took too long. */
  readonly status: number | undefined
  readonly failure: string | undefined
}

/** Sends a turn, once. Never throws. */
export const sendTurn = (request: CompletionRequest): Promise<SentTurn> =>
  sentTurn(request.prompt.length, () => streamCompletion(request))

/** What a client sees of an answer. `promptTokens`: where the engine does not tell. Never throws. */
export const sentTurn = async (promptTokens: number, stream: () => Promise<StreamedCompletion>): Promise<SentTurn> => {
  const startedMs = performance.now()
  try {
    const seen = await stream()
    return {
      ttftMs: seen.ttftMs,
      totalMs: seen.totalMs,
      promptTokens: seen.promptTokens ?? promptTokens,
      cachedTokens: seen.cachedTokens,
      answerTokens: seen.answerTokens ?? 0,
      cache: seen.headers.get('x-context-cache') ?? '',
      sessionId: seen.headers.get('x-session-id') ?? undefined,
      status: 200,
      failure: undefined,
    }
  } catch (error) {
    return {
      ttftMs: undefined,
      totalMs: performance.now() - startedMs,
      promptTokens,
      cachedTokens: 0,
      answerTokens: 0,
      cache: '',
      sessionId: undefined,
      status: error instanceof CompletionError ? error.status : undefined,
      failure: failureText(error),
    }
  }
}

/** With its cause: what `fetch` throws only says that it failed. */
const failureText = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
