import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { ServerCredentials } from '@grpc/grpc-js'

/** Files in PEM format. */
export interface TlsFiles {
  /** The server's certificate, with the intermediate ones behind it. */
  readonly certificate: string
  readonly key: string
  /** Certificates of the authorities that sign clients. Undefined: clients need no certificate. */
  readonly clientCa?: string | undefined
}

/** Credentials that follow their files. */
export type TlsCredentials = Awaited<ReturnType<typeof createTlsCredentials>>

const defaultReloadMs = 1_000

/**
 * Reads the files, and again every second: new connections get what they hold now. Files that cannot be used are
 * reported to `onFault` once, and the last good ones stay. Rejects when the files cannot be used at the start.
 */
export const createTlsCredentials = async (
  files: TlsFiles,
  options: { readonly onFault: (error: unknown) => void; readonly reloadMs?: number },
) => {
  let seen = await readFiles(files)
  let reported = ''
  const credentials = new FileCredentials(files.clientCa !== undefined, checked(seen))
  const reload = async (): Promise<void> => {
    try {
      const found = await readFiles(files)
      reported = ''
      if (isDeepStrictEqual(found, seen)) return
      seen = found
      credentials.update(checked(found))
    } catch (error) {
      // A file that is missing fails at every look.
      if (reported === String(error)) return
      reported = String(error)
      options.onFault(new Error('the TLS files cannot be used; the last good ones stay', { cause: error }))
    }
  }
  const timer = setInterval(() => void reload(), options.reloadMs ?? defaultReloadMs)
  timer.unref()
  /** Stops looking at the files. */
  const close = (): void => clearInterval(timer)
  return { credentials, close }
}

const readFiles = async ({ certificate, key, clientCa }: TlsFiles): Promise<SecureContextOptions> => ({
  cert: await readFile(certificate),
  key: await readFile(key),
  ca: clientCa === undefined ? undefined : await readFile(clientCa),
})

/** Throws unless key and certificate fit. OpenSSL ignores a `ca` that is no certificate; X509Certificate does not. */
const checked = (context: SecureContextOptions): SecureContextOptions => {
  if (Buffer.isBuffer(context.ca)) new X509Certificate(context.ca)
  createSecureContext(context)
  return context
}

class FileCredentials extends ServerCredentials {
  constructor(needsClientCertificate: boolean, context: SecureContextOptions) {
    super({ requestCert: needsClientCertificate, rejectUnauthorized: needsClientCertificate }, context)
  }

  update(context: SecureContextOptions): void {
    this.updateSecureContextOptions(context)
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}
