import { createParser } from 'eventsource-parser'
import { request } from 'undici'
import { sentenceOf } from '../telemetry/sentence-of.ts'
import { type AdminAccess, adminHeaders } from './admin-address.ts'
import { refusalOf, withoutAnswer } from './admin-api.ts'
import { below } from './ask.ts'

/** An event comes every second: a stream that is silent for so long is lost. */
const silenceMs = 10_000

/** Follows `/api/events` until it ends or `signal` aborts. Resolves to why it ended. */
export const followEvents = async (
  access: AdminAccess,
  options: { readonly onEvent: (name: string, data: string) => void; readonly signal: AbortSignal },
): Promise<string> => {
  const { onEvent, signal } = options
  const parser = createParser({ onEvent: ({ event = '', data }) => onEvent(event, data) })
  const timeouts = { headersTimeout: silenceMs, bodyTimeout: silenceMs }
  try {
    const url = below(access.address, '/api/events')
    const { statusCode, body } = await request(url, { headers: adminHeaders(access), signal, ...timeouts })
    if (statusCode !== 200) return refusalOf(access, statusCode, await body.text())
    body.setEncoding('utf8')
    for await (const chunk of body) parser.feed(String(chunk))
    return `${access.address} ended the stream of events.`
  } catch (error) {
    return withoutAnswer(`${access.address} does not answer: ${sentenceOf(error)}.`)
  }
}
