import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import { neverConnected } from '../../engines/engine-http.ts'
import { type SlotClient, type SlotSnapshot, slotsAnswer } from '../slots/slot-client.ts'

/** All slots of a pod, and the fingerprint of its engine: equal for engines that can load each other's KV. */
export interface EngineView {
  readonly slots: readonly SlotSnapshot[]
  readonly fingerprint: string
}

/** `GET /props` of llama-server: what its KV depends on. */
export const propsSchema = z.object({
  build_info: z.string().optional(),
  model_path: z.string().optional(),
  model_ftype: z.string().optional(),
  total_slots: z.number().optional(),
  default_generation_settings: z.object({ n_ctx: z.number().optional() }).optional(),
})
const adaptersSchema = z.array(z.object({ path: z.string().transform((path) => basename(path)), scale: z.number() }))

const modelSchema = z.object({
  id: z.string().optional(),
  meta: z.record(z.string(), z.unknown()).nullish(),
  max_model_len: z.number().optional(),
  description: z.string().optional(),
})
const modelsSchema = z.object({ data: z.array(modelSchema).optional() })

/** A model's file; in Hugging Face's cache the commit of its weights is the name of its folder. */
const modelFileOf = (path: string): string =>
  [...path.split('/').filter((part) => /^[0-9a-f]{40}$/.test(part)), basename(path)].join('/')

/** A slot's file only loads if model, number of slots and context are the same (else llama-server answers 400). */
const fingerprintOf = (
  props: z.infer<typeof propsSchema>,
  models: z.infer<typeof modelsSchema>,
  others: { readonly adapters: object; readonly modelVersion: string | undefined },
) => {
  const model = models.data?.[0]
  const identity = [
    props.build_info,
    props.model_path === undefined ? undefined : modelFileOf(props.model_path),
    props.model_ftype,
    props.total_slots,
    props.default_generation_settings?.n_ctx,
    others.adapters,
    model?.id === undefined ? undefined : basename(model.id),
    Object.entries(model?.meta ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
    model?.max_model_len,
    model?.description,
    ...(others.modelVersion === undefined ? [] : [others.modelVersion]),
  ]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32)
}

/** Task numbers only grow while an engine runs. A restart shows in lower ones, a failed call, or after this time. */
const trustMs = 60_000

interface KnownEngine {
  readonly fingerprint: string
  readonly untilMs: number
  readonly lastTask: number
}

/** Asks engines for their slots, and at each start of one who it is. */
export interface Engines {
  /**
   * The engine of a pod now. `isClaimed`: a sealed claim names the pod, which may have left the list since, and still
   * serves its last turns.
   * @throws when the pod is neither configured nor claimed, or does not answer as an engine does
   */
  look(pod: string, signal: AbortSignal, how?: { readonly isClaimed?: boolean }): Promise<EngineView>
  /** The pod became ready: another engine may have taken its address. */
  forget(pod: string): void
  /** Whether the engine was seen to take the gateway's fields on `/v1/messages`; llama-server ignores them there. */
  takesFieldsOnMessages(pod: string): boolean
  /** It was seen to. */
  tookFieldsOnMessages(pod: string): void
}

/** `pods` are those that may be asked. */
export const createEngines = (
  client: Pick<SlotClient, 'ask'>,
  pods: () => readonly string[],
  /** What the operator calls their weights: engines do not tell. Default: not named. */
  modelVersion?: string,
): Engines => {
  const known = new Map<string, KnownEngine>()
  const renewing = new Set<string>()
  const takingFields = new Set<string>()

  const identify = async (pod: string, signal: AbortSignal) => {
    const [props, models, adapters] = await Promise.all([
      // An engine without /props is known by its model alone.
      client.ask({ pod, path: '/props' }, propsSchema.default({}), signal),
      client.ask({ pod, path: '/v1/models' }, modelsSchema, signal),
      client.ask({ pod, path: '/lora-adapters' }, adaptersSchema.default([]), signal),
    ])
    return {
      fingerprint: fingerprintOf(props, models, { adapters, modelVersion }),
      untilMs: performance.now() + trustMs,
    }
  }

  /** A busy engine answers this between two batches: no turn waits for what is most probably still true. */
  const renew = async (pod: string): Promise<void> => {
    if (renewing.has(pod)) return
    renewing.add(pod)
    try {
      const identity = await identify(pod, AbortSignal.timeout(trustMs))
      const { lastTask = -1 } = known.get(pod) ?? {}
      known.set(pod, { ...identity, lastTask })
    } catch {
      known.delete(pod)
    } finally {
      renewing.delete(pod)
    }
  }

  const look = async (pod: string, signal: AbortSignal, { isClaimed = false }): Promise<EngineView> => {
    if (!isClaimed && !pods().includes(pod)) throw new Error('the pod is not configured')
    const slots = await client.ask({ pod, path: '/slots' }, slotsAnswer, signal)
    const lastTask = Math.max(-1, ...slots.map(({ task = -1 }) => task))
    const earlier = known.get(pod)
    const isKnown = earlier !== undefined && lastTask >= earlier.lastTask
    const engine = isKnown ? earlier : await identify(pod, signal)
    known.set(pod, { ...engine, lastTask })
    if (performance.now() >= engine.untilMs) void renew(pod)
    return { slots, fingerprint: engine.fingerprint }
  }

  return {
    look: (pod, signal, how = {}) =>
      look(pod, signal, how).catch((error: unknown) => {
        // One that is late is busy, as far as anybody knows.
        if (!isLate(error)) known.delete(pod)
        throw error
      }),
    forget: (pod) => {
      known.delete(pod)
      takingFields.delete(pod)
    },
    takesFieldsOnMessages: (pod) => takingFields.has(pod),
    tookFieldsOnMessages: (pod) => void takingFields.add(pod),
  }
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? (error.cause ?? error) : error)

/** Whether there is no engine at the address. */
export const isAway = (error: unknown): boolean => neverConnected(causeOf(error))

/** Whether the engine did not answer in time: it may be busy. */
export const isLate = (error: unknown): boolean => {
  const cause = causeOf(error)
  return cause instanceof Error && ['TimeoutError', 'AbortError'].includes(cause.name)
}
