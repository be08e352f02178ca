import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type TlsOptions } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'

/** Files in PEM format. */
export interface TlsFiles {
  /** The server's certificate, with the intermediate ones behind it. */
  readonly certificate: string
  readonly key: string
  /** Certificates of the authorities that sign clients. Undefined: clients need no certificate. */
  readonly clientCa?: string | undefined
}

const reloadMs = 1_000

/** Reads the files. Rejects unless they can be used. */
export const readTlsFiles = async ({ certificate, key, clientCa }: TlsFiles): Promise<TlsOptions> =>
  checked({
    cert: await readFile(certificate),
    key: await readFile(key),
    ...(clientCa === undefined ? {} : { ca: await readFile(clientCa), requestCert: true, rejectUnauthorized: true }),
  })

/**
 * Reads the files again every second, and calls `apply` when they hold something else than `known`. Files that cannot
 * be used are reported to `onFault` once, and the last good ones stay. Returns a function that ends this.
 */
export const followTlsFiles = (
  files: TlsFiles,
  known: TlsOptions,
  on: { readonly apply: (changed: TlsOptions) => void; readonly onFault: (error: unknown) => void },
): (() => void) => {
  let seen = known
  let reported = ''
  const reload = async (): Promise<void> => {
    try {
      const found = await readTlsFiles(files)
      reported = ''
      if (isDeepStrictEqual(found, seen)) return
      seen = found
      on.apply(found)
    } catch (error) {
      // A file that is missing fails at every look.
      if (reported === String(error)) return
      reported = String(error)
      on.onFault(new Error('the TLS files cannot be used; the last good ones stay', { cause: error }))
    }
  }
  const timer = setInterval(() => void reload(), reloadMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** Throws unless key and certificate fit. OpenSSL ignores a `ca` that is no certificate; X509Certificate does not. */
const checked = (options: TlsOptions): TlsOptions => {
  if (Buffer.isBuffer(options.ca)) new X509Certificate(options.ca)
  createSecureContext(options)
  return options
}
