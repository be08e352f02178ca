import { readJson } from '../../json/read-json.ts'
import { GatewayError } from '../gateway-error.ts'

/** What a client asks for and an engine with /v1/chat/completions alone does not have. `what`: a sentence. */
export const unsupported = (param: string, what: string): GatewayError =>
  new GatewayError('unsupported_parameter', {
    param,
    message: `${what} The engines of this model have no /v1/responses, and /v1/chat/completions has nothing like it.`,
  })

/** Longest text that counts as a name. */
const maxNameLength = 1024

/** A text that is a name; undefined for any other value. */
export const nameIn = (value: Buffer | undefined): string | undefined => {
  const name = value && readJson(value.toString(), maxNameLength)
  return typeof name === 'string' ? name : undefined
}

export const isText = (value: Buffer | undefined): value is Buffer => value?.[0] === 0x22
export const isList = (value: Buffer | undefined): value is Buffer => value?.[0] === 0x5b
export const isObject = (value: Buffer | undefined): value is Buffer => value?.[0] === 0x7b
/** `null` asks for nothing, as a missing member does. */
export const isGiven = (value: Buffer | undefined): value is Buffer => value !== undefined && value[0] !== 0x6e
