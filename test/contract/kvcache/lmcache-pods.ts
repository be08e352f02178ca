import { request } from 'undici'
import type { SimulatedFleet, SimulatedPod } from '../../support/simulated-fleet/simulated-fleet.ts'
import type { TestPod, TestUsage } from './kv-test-bed.ts'

/** Has a simulated pod answer a prompt. */
export const runOn = async (
  { modelName }: Pick<SimulatedFleet, 'modelName'>,
  { address }: Pick<SimulatedPod, 'address'>,
  { prompt, sessionId, fields = {} }: Parameters<TestPod['run']>[0],
): Promise<TestUsage> => {
  const answer = await request(`http://${address}/v1/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(sessionId === undefined ? {} : { 'x-session-id': sessionId }),
    },
    body: JSON.stringify({ model: modelName, max_tokens: 4, prompt, ...fields }),
    // A pod that is restarted closes its connections.
    reset: true,
  })
  if (answer.statusCode !== 200) throw new Error(`the pod answered ${answer.statusCode}: ${await answer.body.text()}`)
  const { usage } = (await answer.body.json()) as EngineAnswer
  return {
    promptTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens,
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
  }
}

interface EngineAnswer {
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
  }
}
