import { get } from 'node:http'
import { startDeadline } from './deadline.ts'

/** What a GET came to. */
export type HttpGetOutcome =
  | { readonly ok: true; readonly status: number; readonly body: string }
  | { readonly ok: false; readonly reason: string }

/** GETs a small text over a connection of its own, so that no socket stays open towards a server that is then stopped. */
export function httpGet(
  url: string,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<HttpGetOutcome> {
  const deadline = startDeadline(options)
  return new Promise<HttpGetOutcome>((resolve) => {
    const fail = (error: Error): void => resolve({ ok: false, reason: error.message })
    get(url, { agent: false, signal: deadline.signal }, (response) => {
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', (text: string) => {
          body += text
        })
        .on('end', () => resolve({ ok: true, status: response.statusCode ?? 0, body }))
        .on('error', fail)
    }).on('error', fail)
  }).finally(() => deadline.end())
}
