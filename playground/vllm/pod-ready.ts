import { httpGet } from '../launcher/http-get.ts'
import type { ReadyProbe } from '../launcher/wait-until-ready.ts'
import { servedModelName } from './fleet-plan.ts'

const healthTimeoutMs = 2000
/** Shorter than one chunk, so that nothing of it is stored. */
const firstPrompt = 'The first prompt. '.repeat(8)

/**
 * A pod is ready when it has answered a first prompt, not when it says that it is healthy: that prompt takes seconds
 * longer than any other, and shows whether vLLM's kernels run on this processor at all.
 */
export const podReady = (url: string): ReadyProbe => ({
  kind: 'check',
  description: `an answer to a first prompt from ${url}`,
  check: async (signal) => {
    const health = await httpGet(`${url}/health`, { timeoutMs: healthTimeoutMs, signal })
    return health.ok && health.status === 200 && (await answersPrompt(url, signal))
  },
})

const answersPrompt = async (url: string, signal: AbortSignal): Promise<boolean> => {
  try {
    const response = await fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model: servedModelName, prompt: firstPrompt, max_tokens: 2 }),
      signal,
    })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
