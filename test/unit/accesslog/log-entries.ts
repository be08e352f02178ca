import { field, int } from '../extproc/protobuf-bytes.ts'

/** What Envoy can say of a request's end, with the names of envoy.yaml. */
const names = {
  requestKey: 'key',
  status: 'status',
  flags: 'flags',
  upstreamAddress: 'upstream',
  sentUs: 'sent_us',
  answeredUs: 'answered_us',
  stream: 'stream',
  usage: 'usage',
  timings: 'timings',
  ticket: 'ticket',
} as const

type Part = keyof typeof names
const parts: readonly Part[] = [
  'requestKey',
  'status',
  'flags',
  'upstreamAddress',
  'sentUs',
  'answeredUs',
  'stream',
  'usage',
  'timings',
  'ticket',
]

export type Said = Partial<Readonly<Record<Part, string>>>

/** What Envoy writes between two parts. */
export const separator = '\u001f'

/** An entry as Envoy writes it: a dash stands for what it cannot say. */
export const entryOf = (said: Said): string =>
  parts.map((part) => `${names[part]}=${said[part] ?? '-'}`).join(separator)

/** A turn that was answered whole. */
export const answered: Said = {
  ticket: 't1',
  status: '200',
  upstreamAddress: '10.0.0.1:8000',
  sentUs: '5000',
  answeredUs: '1007500',
}

/** An opentelemetry.proto.logs.v1.LogRecord with this text, and what else Envoy writes into it. */
const recordOf = (text: string): Buffer => field(2, int(10, 7), field(5, field(1, text)), field(9, Buffer.alloc(16)))

/** An ExportLogsServiceRequest. */
export const batchOf = (...entries: readonly string[]): Buffer =>
  field(1, field(1, field(1)), field(2, field(1, field(1, 'envoy')), ...entries.map(recordOf)))
