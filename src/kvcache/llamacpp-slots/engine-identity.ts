import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import * as z from 'zod'
import type { QueryOutcome, SlotClient } from '../slots/slot-client.ts'

/** Which engine answers under an address. */
export interface EngineIdentity {
  /** Equal for engines that can load each other's KV: same build, same model, same context settings. */
  readonly fingerprint: string
  /** Differs for every start of the engine's process; empty where the engine does not tell. */
  readonly boot: string
}

/** Asks engines who they are. */
export interface EngineIdentities {
  of(pod: string, signal: AbortSignal): Promise<QueryOutcome<EngineIdentity>>
}

const propsSchema = z.object({
  build_info: z.string().optional(),
  model_path: z.string().optional(),
  model_ftype: z.string().optional(),
  total_slots: z.number().optional(),
  media_marker: z.string().optional(),
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

type Props = z.infer<typeof propsSchema>
type Models = z.infer<typeof modelsSchema>

/** A slot's file only loads where model, number of slots and context are the same (llama-server answers 400 otherwise). */
const fingerprintOf = (props: Props, models: Models): string => {
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

/** llama-server's random marker for media in prompts: the only thing it tells that differs for every start. */
const bootOf = (props: Props): string => props.media_marker ?? ''

/** An engine without `/props` is known by its model alone. */
const orNoProps = (props: QueryOutcome<Props>): QueryOutcome<Props> =>
  props.kind === 'failed' && props.status === 404 ? { kind: 'answered', value: {} } : props

export const createEngineIdentities = (client: Pick<SlotClient, 'about'>): EngineIdentities => {
  const known = new Map<string, { readonly boot: string; readonly models: Models }>()

  /** The model of a process never changes; whether it is the same process is only known where the engine tells. */
  const modelsOf = async (pod: string, boot: string, signal: AbortSignal): Promise<QueryOutcome<Models>> => {
    const earlier = known.get(pod)
    if (boot !== '' && earlier?.boot === boot) return { kind: 'answered', value: earlier.models }
    const models = await client.about({ pod, path: '/v1/models', schema: modelsSchema, signal })
    if (models.kind === 'answered') known.set(pod, { boot, models: models.value })
    return models
  }

  return {
    of: async (pod, signal) => {
      const props = orNoProps(await client.about({ pod, path: '/props', schema: propsSchema, signal }))
      if (props.kind === 'failed') return props
      const boot = bootOf(props.value)
      const models = await modelsOf(pod, boot, signal)
      if (models.kind === 'failed') return models
      return { kind: 'answered', value: { fingerprint: fingerprintOf(props.value, models.value), boot } }
    },
  }
}
