import { call, type HttpResponse } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply, RecordedRequest } from '../support/pod-script.ts'
import type { ScriptedPod } from '../support/scripted-pod.ts'
import { engineResponse } from '../support/scripted-responses.ts'
import type { Stack } from '../support/stack.ts'

/** A pod that holds every request until the test lets it respond. */
export interface HoldingPod {
  readonly pod: ScriptedPod
  /** Models of the held requests, the oldest first. */
  running(): readonly string[]
  /** Responds to the oldest request of a model, or of any. */
  respond(model?: string): void
  /** From now on every request gets its response at once, or no longer. */
  release(isFree: boolean): void
}

interface Held {
  readonly model: string
  readonly request: RecordedRequest
  readonly reply: PodReply
}

export const holdRequests = (pod: ScriptedPod): HoldingPod => {
  let held: readonly Held[] = []
  let isFree = false
  const finish = async ({ request, reply }: Held): Promise<void> => engineResponse()(request, reply)
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
    respond: (model) => {
      const one = held.find((other) => model === undefined || other.model === model)
      if (one === undefined) throw new Error(`no request of ${model ?? 'any model'} is held`)
      void finish(one)
    },
    release: (free) => {
      isFree = free
      if (free) for (const one of held) void finish(one)
    },
  }
}

/** A create on an inference path. */
export const send = (stack: Stack, model: string, headers: Record<string, string> = {}): Promise<HttpResponse> =>
  call(`${stack.url}/v1/completions`, {
    headers: { 'x-session-ttl': '60', ...headers },
    body: { model, prompt: 'Say this is a test' },
  })

/** Turns that wait. */
export const waiting = (stack: Stack): Promise<number> => metric(stack, 'admission_waiting')

/** Copies in use of all resources. */
export const inUse = (stack: Stack): Promise<number> => metric(stack, 'admission_resource_in_use')
