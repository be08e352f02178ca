import { type Dispatcher, request } from 'undici'
import { sentenceOf } from '../telemetry/sentence-of.ts'

/** The answer to a question over HTTP. */
export interface Answer {
  readonly status: number
  readonly text: string
  /** The header `date`, and when the question left and the answer's headers came, milliseconds since 1970. */
  readonly date: string | undefined
  readonly askedMs: number
  readonly answeredMs: number
}

export interface Question {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** TLS of its own. Default: Node.js's. */
  readonly dispatcher?: Dispatcher | undefined
}

const timeoutMs = 10_000
const maxBytes = 64 * 1024 * 1024

/** Asks, or says in a sentence without the question's headers why there is no answer: at most 10 s and 64 MiB. */
export const ask = async (url: string, question: Question = {}): Promise<Answer | string> => {
  const { method = 'GET', headers = {}, body = null, dispatcher } = question
  const askedMs = Date.now()
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const options = { method, headers, body, signal, ...(dispatcher === undefined ? {} : { dispatcher }) }
    const answer = await request(url, options)
    const answeredMs = Date.now()
    const { date } = answer.headers
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of answer.body) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxBytes) return `${hostOf(url)} answers with more than ${maxBytes} bytes`
    }
    const text = Buffer.concat(chunks).toString()
    return { status: answer.statusCode, text, date: typeof date === 'string' ? date : undefined, askedMs, answeredMs }
  } catch (error) {
    return `${hostOf(url)} does not answer: ${sentenceOf(error)}`
  }
}

/** A path below a base address, which may have a path of its own, as behind a reverse proxy. */
export const below = (base: string, path: string): string => `${base.replace(/\/+$/, '')}${path}`

/** `http://host:port`, without credentials, path and query. */
const hostOf = (url: string): string => new URL(url).origin

/** An address that can be asked: http or https. */
export const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
