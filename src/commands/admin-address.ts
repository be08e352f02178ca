import { readFileSync } from 'node:fs'
import { sentenceOf } from '../telemetry/sentence-of.ts'
import { isHttpUrl } from './ask.ts'

/** Flags of the commands that ask a gateway's admin port. */
export const adminFlags = {
  admin: { type: 'string' },
  'token-file': { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

type Environment = Readonly<Record<string, string | undefined>>

// Not `CTX_…`: a gateway refuses those that are no options.
const urlVariable = 'CONTEXT_CACHE_ADMIN_URL'
const tokenVariable = 'CONTEXT_CACHE_ADMIN_TOKEN'
const standard = 'http://127.0.0.1:9090'

/** The flag, else the variable, else a gateway on this machine. */
export const adminAddress = ({ admin }: { readonly admin?: string | undefined }, env: Environment): string =>
  admin ?? (env[urlVariable] || standard)

/** Where the operators' API is, and the credential for it. */
export interface AdminAccess {
  readonly address: string
  readonly token: string | undefined
}

/** Reads flags and variables. A text: what is wrong with them. The token is in a file or a variable, never an argument. */
export const adminAccess = (
  flags: { readonly admin?: string | undefined; readonly 'token-file'?: string | undefined },
  env: Environment,
): AdminAccess | string => {
  const address = adminAddress(flags, env)
  if (!isHttpUrl(address)) return `--admin ${address}: must be http://host:port`
  const file = flags['token-file']
  if (file === undefined) return { address, token: env[tokenVariable] || undefined }
  try {
    return { address, token: readFileSync(file, 'utf8').trim() }
  } catch (error) {
    return `--token-file: ${sentenceOf(error)}`
  }
}

/** Headers of a request to the API. */
export const adminHeaders = ({ token }: AdminAccess): Readonly<Record<string, string>> => ({
  // What changes something needs it.
  'x-requested-with': 'context-cache',
  ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
})
