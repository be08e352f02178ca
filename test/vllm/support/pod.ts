import { z } from 'zod'
import type { PodDescription } from '../../../playground/vllm/fleet-description.ts'
import { vllmFleet } from './fleet.ts'
import { httpJson } from './http-json.ts'

const completionSchema = z.object({
  choices: z.array(z.object({ text: z.string() })),
  usage: z.object({
    prompt_tokens: z.number(),
    completion_tokens: z.number(),
    prompt_tokens_details: z.object({ cached_tokens: z.number() }).nullish(),
  }),
})

/** Text and token counts of a completion, `cached_tokens` as the engine reports them. */
export interface CompletionReport {
  readonly text: string
  readonly promptTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** Sends a completion to a pod, past any gateway: one token, unless `fields` asks for more. */
export const completeOn = async (
  pod: PodDescription,
  request: {
    readonly prompt: string | readonly number[]
    readonly salt?: string | undefined
    readonly fields?: Readonly<Record<string, unknown>> | undefined
  },
): Promise<CompletionReport> => {
  const answer = await httpJson('POST', `${pod.url}/v1/completions`, {
    model: vllmFleet().servedModelName,
    prompt: request.prompt,
    max_tokens: 1,
    temperature: 0,
    ...(request.salt === undefined ? {} : { cache_salt: request.salt }),
    ...request.fields,
  })
  return readCompletion(answer)
}

export const readCompletion = (answer: unknown): CompletionReport => {
  const { choices, usage } = completionSchema.parse(answer)
  return {
    text: choices.map(({ text }) => text).join(''),
    promptTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  }
}

/** Token ids of a prompt, from the pod's own tokenizer. */
export const tokenize = async (pod: PodDescription, prompt: string): Promise<readonly number[]> => {
  const answer = await httpJson('POST', `${pod.url}/tokenize`, { model: vllmFleet().servedModelName, prompt })
  return z.object({ tokens: z.array(z.number()) }).parse(answer).tokens
}

/** Empties vLLM's own prefix cache; LMCache keeps its chunks. */
export const resetPrefixCache = async (pod: PodDescription): Promise<void> => {
  await httpJson('POST', `${pod.url}/reset_prefix_cache`)
}

/** The sum of a metric over all labels. */
export const podMetric = async (pod: PodDescription, name: string): Promise<number> => {
  const response = await fetch(`${pod.url}/metrics`, { signal: AbortSignal.timeout(10_000) })
  const samples = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
