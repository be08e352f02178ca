import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import type { QueryOutcome, SlotClient } from '../slots/slot-client.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'

/** All slots of a pod as they are now, and which engine answers there. */
export interface EngineView {
  readonly slots: readonly SlotSnapshot[]
  /** Equal for engines that can load each other's KV: same build, same model, same context settings. */
  readonly fingerprint: string
}

/** Asks engines for their slots, and at each start of one who it is. */
export interface Engines {
  look(pod: string, signal: AbortSignal): Promise<QueryOutcome<EngineView>>
}

const propsSchema = z.object({
  build_info: z.string().optional(),
  model_path: z.string().optional(),
  model_ftype: z.string().optional(),
  total_slots: z.number().optional(),
  default_generation_settings: z
    .object({
      n_ctx: z.number().optional(),
      params: z.object({ lora: z.unknown().optional() }).optional(),
    })
    .optional(),
})

const modelsSchema = z.object({
  data: z
    .array(
      z.object({
        id: z.string().optional(),
        meta: z.record(z.string(), z.unknown()).nullish(),
        max_model_len: z.number().optional(),
        description: z.string().optional(),
      }),
    )
    .optional(),
})

/** A slot's file only loads where model, number of slots and context are the same (llama-server answers 400 otherwise). */
const fingerprintOf = (props: z.infer<typeof propsSchema>, models: z.infer<typeof modelsSchema>): string => {
  const model = models.data?.[0]
  const identity = [
    props.build_info,
    props.model_path === undefined ? undefined : basename(props.model_path),
    props.model_ftype,
    props.total_slots,
    props.default_generation_settings?.n_ctx,
    props.default_generation_settings?.params?.lora,
    model?.id === undefined ? undefined : basename(model.id),
    Object.entries(model?.meta ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
    model?.max_model_len,
    model?.description,
  ]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32)
}

/** Task numbers only grow while an engine runs. A restart shows in lower ones, in a call that fails, or after this time. */
const trustMs = 60_000

interface Known {
  readonly fingerprint: string
  readonly untilMs: number
  readonly lastTask: number
}

export const createEngines = (client: Pick<SlotClient, 'slots' | 'about'>, pods: () => readonly string[]): Engines => {
  const known = new Map<string, Known>()

  const identify = async (pod: string, signal: AbortSignal): Promise<QueryOutcome<string>> => {
    const [props, models] = await Promise.all([
      client.about({ pod, path: '/props', schema: propsSchema, signal }),
      client.about({ pod, path: '/v1/models', schema: modelsSchema, signal }),
    ])
    // An engine without /props is known by its model alone.
    if (props.kind === 'failed' && props.status !== 404) return props
    if (models.kind === 'failed') return models
    return { kind: 'answered', value: fingerprintOf(props.kind === 'failed' ? {} : props.value, models.value) }
  }

  const look: Engines['look'] = async (pod, signal) => {
    if (!pods().includes(pod))
      return { kind: 'failed', status: undefined, cause: new Error('the pod is not configured') }
    const slots = await client.slots(pod, signal)
    if (slots.kind === 'failed') return slots
    const lastTask = Math.max(-1, ...slots.value.map(({ task = -1 }) => task))
    const earlier = known.get(pod)
    let { fingerprint, untilMs } = earlier ?? { fingerprint: '', untilMs: 0 }
    if (earlier === undefined || lastTask < earlier.lastTask || untilMs < performance.now()) {
      const identity = await identify(pod, signal)
      if (identity.kind === 'failed') return identity
      fingerprint = identity.value
      untilMs = performance.now() + trustMs
    }
    known.set(pod, { fingerprint, untilMs, lastTask })
    return { kind: 'answered', value: { slots: slots.value, fingerprint } }
  }

  return {
    look: async (pod, signal) => {
      const view = await look(pod, signal)
      if (view.kind === 'failed') known.delete(pod)
      return view
    },
  }
}
