import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { type AdminAnswer, text } from './admin-routes.ts'

/** Answers a path with what the console has there; undefined: no such file. `etag` is the request's `if-none-match`. */
export type ConsoleFiles = (path: string, etag?: string) => AdminAnswer | undefined

interface ServedFile {
  readonly body: string
  readonly etag: string
  readonly contentType: string
}

/** Other files of the folder, such as the compiler's, are not served. */
const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** Scripts, styles and connections of its own origin alone, in no frame; what the page needs and nothing else. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

const securityHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}

/**
 * The console's files by their paths below `/console/`, read once, so that no path of a request reaches the disk.
 * Default folder: the one that the build fills beside this module; without one there is no console.
 */
export const readConsoleFiles = (folder = join(import.meta.dirname, 'console')): ConsoleFiles => {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  const files = new Map<string, ServedFile>(
    names.flatMap((name) => {
      const contentType = contentTypes[extname(name)]
      if (contentType === undefined) return []
      const body = readFileSync(join(folder, name), 'utf8')
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
      return [[`/console/${name.replaceAll(sep, '/')}`, { body, etag, contentType }] as const]
    }),
  )
  return (path, etag) => {
    // Relative, since a proxy may have put a prefix before it that the gateway does not see.
    if (path === '/console' && files.size > 0) return { ...text('console/\n', 308), headers: { location: 'console/' } }
    const file = files.get(path === '/console/' ? '/console/index.html' : path)
    if (file === undefined) return undefined
    const { body, contentType } = file
    const headers = { ...securityHeaders, etag: file.etag, 'cache-control': 'no-cache' }
    return etag === file.etag
      ? { status: 304, contentType, headers, body: '' }
      : { status: 200, contentType, headers, body }
  }
}
