import { call } from '../support/client.ts'
import { engineAnswer } from '../support/scripted-answers.ts'
import { type PodReply, type RecordedRequest, type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import type { Stack } from '../support/stack.ts'

/** A pod that keeps every request until the test lets it answer. */
export interface HoldingPod {
  readonly pod: ScriptedPod
  /** Models of the requests that it works on, in the order in which they came. */
  running(): readonly string[]
  /** Answers the oldest request of a model, or of any. */
  answer(model?: string): void
  /** Answers everything from now on at once, or no longer. */
  letGo(isFree: boolean): void
}

interface Held {
  readonly model: string
  readonly request: RecordedRequest
  readonly reply: PodReply
}

export const startHoldingPod = async (): Promise<HoldingPod> => {
  const pod = await startScriptedPod()
  let held: readonly Held[] = []
  let isFree = false
  const finish = async ({ request, reply }: Held): Promise<void> => engineAnswer()(request, reply)
  pod.otherwise(async (request, reply) => {
    const { model } = JSON.parse(request.body) as { readonly model: string }
    const one = { model, request, reply }
    if (isFree) return finish(one)
    held = [...held, one]
    await reply.finished
    held = held.filter((other) => other !== one)
  })
  return {
    pod,
    running: () => held.map(({ model }) => model),
    answer: (model) => {
      const one = held.find((other) => model === undefined || other.model === model)
      if (one === undefined) throw new Error(`no request of ${model ?? 'any model'} is held`)
      void finish(one)
    },
    letGo: (free) => {
      isFree = free
      if (free) for (const one of held) void finish(one)
    },
  }
}

export type Answer = Awaited<ReturnType<typeof call>>

/** A create on an inference path. */
export const send = (stack: Stack, model: string, headers: Record<string, string> = {}): Promise<Answer> =>
  call(`${stack.url}/v1/completions`, {
    headers: { 'x-session-ttl': '60', ...headers },
    body: { model, prompt: 'Say this is a test' },
  })

/** Values of a metric by its labels, as they are written. */
export const readMetric = async (stack: Stack, name: string): Promise<Readonly<Record<string, number>>> => {
  const { text } = await call(`${stack.gateway().adminUrl}/metrics`)
  const rows = [...text.matchAll(/^context_cache_([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)$/gm)]
  return Object.fromEntries(
    rows.filter(([, metric]) => metric === name).map(([, , labels = '', value]) => [labels, Number(value)]),
  )
}

export const waiting = async (stack: Stack): Promise<number> => (await readMetric(stack, 'admission_waiting'))[''] ?? -1

/** Copies in use of all resources. */
export const inUse = async (stack: Stack): Promise<number> =>
  Object.values(await readMetric(stack, 'admission_resource_in_use')).reduce((sum, value) => sum + value, 0)
