import { readJson } from '../../json/read-json.ts'

/** What is kept with a session of a prefix that is computed again on every pod it comes to. The prefix itself lies in the vault. */
export interface WarmPrefix {
  readonly artefactId: string
  readonly life: string
  /** The pods that have computed it, each with the start of its process that did; empty where a pod does not tell its start. */
  readonly pods: readonly (readonly [pod: string, boot: string])[]
}

export const encodeWarmPrefix = ({ artefactId, life, pods }: WarmPrefix): string =>
  JSON.stringify({ v: 1, a: artefactId, l: life, p: pods })

/** Undefined for what is no payload of this version. Many turns read one, so it is checked by hand. */
export const parseWarmPrefix = (payload: string): WarmPrefix | undefined => {
  const json = readJson(payload)
  if (!isObject(json)) return undefined
  const { v, a, l, p, ...others } = json
  if (v !== 1 || Object.keys(others).length > 0) return undefined
  if (!isText(a, 64) || a === '' || !isText(l, 64) || !isPodList(p)) return undefined
  return { artefactId: a, life: l, pods: p }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isText = (value: unknown, maxLength: number): value is string =>
  typeof value === 'string' && value.length <= maxLength

const isPodList = (value: unknown): value is WarmPrefix['pods'] =>
  Array.isArray(value) && value.length <= 64 && value.every(isPod)

const isPod = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && isText(value[0], 300) && isText(value[1], 64)
