// Reading what a client sent: members that are not read may hold anything.
import type { z } from 'zod'
import { EngineError } from './exchange.ts'

/** A JSON object that was sent. */
export type Body = Readonly<Record<string, unknown>>

/** Null counts as absent, as in OpenAI's interface. */
export const optional = <Value, Fallback>(schema: z.ZodType<Value>, fallback: Fallback) =>
  schema.nullish().transform((value) => value ?? fallback)

/** @throws EngineError that names the first wrong member */
export const readFields = <Fields>(schema: z.ZodType<Fields>, body: Body): Fields => {
  const { data, error } = schema.safeParse(body)
  if (error === undefined) return data
  const [issue] = error.issues
  const [name] = issue?.path ?? []
  if (issue?.path.length === 1 && body[String(name)] === undefined) throw invalid(`'${String(name)}' is missing.`)
  throw invalid(`'${issue?.path.join('.')}': ${issue?.message}.`)
}

/** A request that the client has to change. */
export const invalid = (message: string): EngineError => new EngineError(400, message)
