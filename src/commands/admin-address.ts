/** Flags of the commands that ask a gateway's admin port. */
export const adminFlags = {
  admin: { type: 'string' },
  'token-file': { type: 'string' },
} as const

type Environment = Readonly<Record<string, string | undefined>>

/** Not `CTX_…`: a gateway refuses those that are no options. */
const urlVariable = 'CONTEXT_CACHE_ADMIN_URL'
const standard = 'http://127.0.0.1:9090'

/** The flag, else the variable, else a gateway on this machine. */
export const adminAddress = ({ admin }: { readonly admin?: string | undefined }, env: Environment): string =>
  admin ?? (env[urlVariable] || standard)
