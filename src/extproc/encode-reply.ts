import type {
  ChangeablePhase,
  DynamicMetadata,
  ImmediateAnswer,
  MetadataValue,
  Phase,
  Reply,
  RequestChanges,
} from './messages.ts'

const overwriteOrAdd = 2

/** A reply as a ProcessingResponse that proto-loader can turn into bytes. */
export const encodeReply = (reply: Reply): object => {
  switch (reply.kind) {
    case 'continue':
      return continueWire[reply.phase]
    case 'proceed':
      return encodeProceed(proceedFields[reply.phase], reply.changes)
    case 'immediate':
      return { immediate_response: encodeImmediate(reply.answer) }
    case 'extend':
      return {
        override_message_timeout: {
          seconds: Math.floor(reply.milliseconds / 1000),
          nanos: Math.floor(reply.milliseconds % 1000) * 1_000_000,
        },
      }
  }
}

const continueWire = {
  'request-headers': { request_headers: { response: {} } },
  'request-body': { request_body: { response: {} } },
  'request-trailers': { request_trailers: {} },
  'response-headers': { response_headers: { response: {} } },
  'response-body': { response_body: { response: {} } },
  'response-trailers': { response_trailers: {} },
} as const satisfies Record<Phase, object>

const proceedFields = {
  'request-headers': 'request_headers',
  'request-body': 'request_body',
  'response-headers': 'response_headers',
} as const satisfies Record<ChangeablePhase, string>

const encodeProceed = (phase: string, changes: RequestChanges): object => ({
  [phase]: { response: encodeMutation(changes.setHeaders) },
  ...encodeMetadata(changes.metadata),
})

const encodeMutation = (headers: Readonly<Record<string, string>>): object => {
  const names = Object.keys(headers)
  return names.length === 0 ? {} : { header_mutation: encodeHeaders(headers) }
}

const encodeMetadata = (metadata: DynamicMetadata): object =>
  Object.keys(metadata).length === 0 ? {} : { dynamic_metadata: encodeStruct(metadata) }

const encodeImmediate = (answer: ImmediateAnswer): object => ({
  status: { code: answer.status },
  headers: encodeHeaders(answer.headers),
  body: answer.body,
  details: answer.details,
})

const encodeHeaders = (headers: Readonly<Record<string, string>>): object => ({
  set_headers: Object.entries(headers).map(([name, value]) => ({
    header: { key: name, raw_value: Buffer.from(value, 'latin1') },
    append_action: overwriteOrAdd,
  })),
})

const encodeStruct = (struct: Readonly<Record<string, MetadataValue>>): object => ({
  fields: Object.fromEntries(
    Object.entries(struct).map(([key, value]) => [
      key,
      typeof value === 'string' ? { stringValue: value } : { structValue: encodeStruct(value) },
    ]),
  ),
})
