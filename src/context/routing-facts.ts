import type { RoutingInput } from '../routing/router.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { SessionKey, StoredKv } from '../sessions/session-record.ts'
import type { GatewayRequest } from './context-cache-manager.ts'

/** Bytes of a request body for each token of its prompt: English text in JSON. Other bodies are longer for as many tokens. */
const bytesPerToken = 4
/** A body may hold pictures, which take far more bytes than tokens. */
const mostNewTokens = 32_768

/** What a turn's pod is chosen by. The prompt is not known yet; its length is guessed from the body's, and is at least what is stored. */
export const routingFacts = (
  forecast: Pick<TtftPredictor, 'residentTokens'>,
  request: GatewayRequest,
  session: {
    readonly key: SessionKey
    readonly model: string
    readonly pod: string | undefined
    readonly kv: StoredKv | undefined
  },
): RoutingInput => {
  const stored = session.kv?.tokens ?? 0
  const bodyTokens = Math.ceil(Number(request.header('content-length')[0] ?? 0) / bytesPerToken)
  const guess = Number.isFinite(bodyTokens) ? bodyTokens : 0
  return {
    affinityKey: session.key,
    lastPod: session.pod,
    model: session.model,
    promptTokens: Math.min(Math.max(stored, guess), stored + mostNewTokens),
    stored: session.kv,
    residentTokens: forecast.residentTokens(session.key),
  }
}
