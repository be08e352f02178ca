import * as z from 'zod'
import { readJson } from '../read-json.ts'

/** What is kept with a session of a prefix that is computed again on every pod it comes to. The prefix itself lies in the vault. */
export interface WarmPrefix {
  readonly artefactId: string
  readonly life: string
  /** The pods that have computed it, each with the start of its process that did; empty where a pod does not tell its start. */
  readonly pods: readonly (readonly [pod: string, boot: string])[]
}

const schema = z.strictObject({
  v: z.literal(1),
  a: z.string().min(1).max(64),
  l: z.string().max(64),
  p: z.array(z.tuple([z.string().max(300), z.string().max(64)])).max(64),
})

export const encodeWarmPrefix = ({ artefactId, life, pods }: WarmPrefix): string =>
  JSON.stringify({ v: 1, a: artefactId, l: life, p: pods })

/** Undefined for what is no payload of this version. */
export const parseWarmPrefix = (payload: string): WarmPrefix | undefined => {
  const parsed = schema.safeParse(readJson(payload))
  return parsed.success ? { artefactId: parsed.data.a, life: parsed.data.l, pods: parsed.data.p } : undefined
}
