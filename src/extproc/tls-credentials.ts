import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
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
export interface TlsCredentials {
  readonly credentials: ServerCredentials
  /** Stops looking at the files. */
  close(): void
}

const defaultReloadMs = 1_000

/**
 * Reads the files, and again every second: new connections get what they hold now. Files that cannot be used are reported to `onFault` once,
 * and the last good ones stay. Rejects when the files cannot be used at the start.
 */
export const createTlsCredentials = async (
  files: TlsFiles,
  options: { readonly onFault: (error: unknown) => void; readonly reloadMs?: number },
): Promise<TlsCredentials> => {
  let seen = await readFiles(files)
  const credentials = new FileCredentials(files.clientCa !== undefined, checked(seen))
  const reload = async (): Promise<void> => {
    try {
      const found = await readFiles(files)
      if (isSame(found, seen)) return
      seen = found
      credentials.update(checked(found))
    } catch (error) {
      // A file that is missing is reported once, too.
      if (seen !== unreadable)
        options.onFault(new Error('the TLS files cannot be used; the last good ones stay', { cause: error }))
      if (isReadError(error)) seen = unreadable
    }
  }
  const timer = setInterval(() => void reload(), options.reloadMs ?? defaultReloadMs)
  timer.unref()
  return { credentials, close: () => clearInterval(timer) }
}

interface TlsTexts {
  readonly cert: Buffer | undefined
  readonly key: Buffer | undefined
  readonly ca: Buffer | undefined
}

const unreadable: TlsTexts = { cert: undefined, key: undefined, ca: undefined }

const readFiles = async ({ certificate, key, clientCa }: TlsFiles): Promise<TlsTexts> => {
  const [cert, keyText, ca] = await Promise.all([
    readFile(certificate),
    readFile(key),
    clientCa === undefined ? undefined : readFile(clientCa),
  ])
  return { cert, key: keyText, ca }
}

const isReadError = (error: unknown): boolean => error instanceof Error && 'syscall' in error

const isSame = (left: TlsTexts, right: TlsTexts): boolean =>
  (['cert', 'key', 'ca'] as const).every((name) => {
    const [a, b] = [left[name], right[name]]
    return a === undefined || b === undefined ? a === b : a.equals(b)
  })

/** Throws unless the key fits the certificate. OpenSSL ignores an authority that is no certificate; X509Certificate does not. */
const checked = ({ cert, key, ca }: TlsTexts): SecureContextOptions => {
  if (ca !== undefined) new X509Certificate(ca)
  const context = { cert, key, ca }
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
