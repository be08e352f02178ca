import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { closeAtOnce, listenLocally } from './local-server.ts'

const value = z
  .looseObject({ stringValue: z.string(), intValue: z.union([z.number(), z.string()]), doubleValue: z.number() })
  .partial()
  .transform(({ stringValue, intValue, doubleValue }) => stringValue ?? doubleValue ?? Number(intValue))
const attributes = z
  .array(z.object({ key: z.string(), value }))
  .transform((list) => Object.fromEntries(list.map(({ key, value: one }) => [key, one])))
const span = z.looseObject({
  name: z.string(),
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  attributes,
  status: z.looseObject({ code: z.number().optional() }),
})
const request = z.object({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(span) })),
    }),
  ),
})

/** A span as it was exported. */
export type ReceivedSpan = z.output<typeof span>

/** Takes OTLP over HTTP with JSON, as a collector does. */
export interface OtlpReceiver {
  readonly url: string
  spans(): readonly ReceivedSpan[]
  /** Attributes of the resources that spans came from, one object for each export. */
  resources(): readonly Readonly<Record<string, string | number>>[]
  /** Every request, headers and body. */
  received(): readonly string[]
  stop(): Promise<void>
}

export const startOtlpReceiver = async (): Promise<OtlpReceiver> => {
  const bodies: string[] = []
  const received: string[] = []
  const server = createServer((incoming, response) => {
    void text(incoming).then((body) => {
      bodies.push(body)
      received.push(`${incoming.url} ${JSON.stringify(incoming.headers)} ${body}`)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  const port = await listenLocally(server)
  const parts = () => bodies.flatMap((body) => request.parse(JSON.parse(body)).resourceSpans)
  return {
    url: `http://127.0.0.1:${port}`,
    spans: () => parts().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    resources: () => parts().map(({ resource }) => resource.attributes),
    received: () => received,
    stop: () => closeAtOnce(server),
  }
}
