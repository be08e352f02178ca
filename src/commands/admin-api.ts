import { z } from 'zod'
import { readJson } from '../json/read-json.ts'
import { type AdminAccess, adminHeaders } from './admin-address.ts'
import { ask, below } from './ask.ts'

/** What the operators' API answers. */
export type ApiReply<T> =
  /** `text` is the JSON of the API, unchanged. */
  | { readonly kind: 'answered'; readonly value: T; readonly text: string }
  /** A sentence that says what to do. */
  | { readonly kind: 'failed'; readonly message: string }

const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) })
const maxJsonLength = 64 * 1024 * 1024

/** Asks the API for one thing. */
export const askApi = async <T>(
  access: AdminAccess,
  path: string,
  schema: z.ZodType<T>,
  method: 'GET' | 'DELETE' = 'GET',
): Promise<ApiReply<T>> => {
  const answer = await ask(below(access.address, path), { method, headers: adminHeaders(access) })
  if (typeof answer === 'string') return failed(withoutAnswer(answer))
  const { status, text } = answer
  if (status !== 200) return failed(refusalOf(access, status, text))
  const parsed = schema.safeParse(readJson(text, maxJsonLength))
  if (!parsed.success)
    return failed(`${access.address} does not answer as the admin port of a gateway of this version does.`)
  return { kind: 'answered', value: parsed.data, text: text.trimEnd() }
}

const failed = (message: string) => ({ kind: 'failed', message }) as const

/** Says where the admin port should be. */
export const withoutAnswer = (why: string): string =>
  `${why}\nIs a gateway's admin port there (listen.admin)? Name another one with --admin URL.`

/** What an answer other than 200 means. */
export const refusalOf = ({ address, token }: AdminAccess, status: number, text: string): string => {
  const { error } = errorSchema.safeParse(readJson(text)).data ?? {}
  if (error?.code === 'unauthorized')
    return token === undefined
      ? 'The gateway asks for its token (listen.admin.token): set CONTEXT_CACHE_ADMIN_TOKEN, or --token-file FILE.'
      : 'The gateway does not accept the token: it is not that of listen.admin.token.'
  if (error !== undefined) return error.message
  return `${address} answers with ${status}: it is no admin port of a gateway of this version.`
}
