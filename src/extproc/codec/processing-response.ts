import type {
  ChangeablePhase,
  DynamicMetadata,
  ImmediateAnswer,
  MetadataValue,
  Phase,
  Reply,
  RequestChanges,
} from '../messages.ts'
import { WireWriter } from './wire-writer.ts'

const overwriteOrAdd = 2

/** Holds every usual reply; one with a long body makes it grow. */
const initialBytes = 4096

const changeableFields: Readonly<Record<ChangeablePhase, number>> = {
  'request-headers': 1,
  'response-headers': 2,
  'request-body': 3,
}
const immediateField = 7
const metadataField = 8
const timeoutField = 10

/** What lets a phase go on unchanged, ready on the wire: the field of the phase, with an empty response in it where it has one. */
const continueBytes: Readonly<Record<Phase, Buffer>> = {
  'request-headers': Buffer.from([1 * 8 + 2, 2, 1 * 8 + 2, 0]),
  'response-headers': Buffer.from([2 * 8 + 2, 2, 1 * 8 + 2, 0]),
  'request-body': Buffer.from([3 * 8 + 2, 2, 1 * 8 + 2, 0]),
  'response-body': Buffer.from([4 * 8 + 2, 2, 1 * 8 + 2, 0]),
  'request-trailers': Buffer.from([5 * 8 + 2, 0]),
  'response-trailers': Buffer.from([6 * 8 + 2, 0]),
}

/**
 * Returns what turns a reply into a ProcessingResponse. Buffers that it gives out must not be written to: some are given
 * out again.
 */
export const createProcessingResponseEncoder = (): ((reply: Reply) => Buffer) => {
  const writer = new WireWriter(initialBytes)
  return (reply) => {
    if (reply.kind === 'continue') return continueBytes[reply.phase]
    writer.reset()
    writeReply(writer, reply)
    return writer.finish()
  }
}

const writeReply = (writer: WireWriter, reply: Exclude<Reply, { kind: 'continue' }>): void => {
  switch (reply.kind) {
    case 'proceed':
      writeProceed(writer, changeableFields[reply.phase], reply.changes)
      return
    case 'immediate':
      writeImmediate(writer, reply.answer)
      return
    case 'extend':
      writeTimeout(writer, reply.milliseconds)
      return
  }
}

const writeProceed = (writer: WireWriter, field: number, changes: RequestChanges): void => {
  writeMetadata(writer, changes.metadata)
  const phase = writer.mark()
  const names = Object.keys(changes.setHeaders)
  if (names.length > 0) writeHeaders(writer, 2, changes.setHeaders, names)
  writer.nested(1, phase)
  writer.nested(field, phase)
}

const writeMetadata = (writer: WireWriter, metadata: DynamicMetadata): void => {
  const names = Object.keys(metadata)
  if (names.length > 0) writeStruct(writer, metadataField, metadata, names)
}

const writeImmediate = (writer: WireWriter, answer: ImmediateAnswer): void => {
  const start = writer.mark()
  writer.utf8(5, answer.details)
  writer.bytes(3, answer.body)
  writeHeaders(writer, 2, answer.headers, Object.keys(answer.headers))
  const status = writer.mark()
  writer.int(1, answer.status)
  writer.nested(1, status)
  writer.nested(immediateField, start)
}

const writeTimeout = (writer: WireWriter, milliseconds: number): void => {
  const start = writer.mark()
  writer.int(2, Math.floor(milliseconds % 1000) * 1_000_000)
  writer.int(1, Math.floor(milliseconds / 1000))
  writer.nested(timeoutField, start)
}

/** A HeaderMutation. */
const writeHeaders = (
  writer: WireWriter,
  field: number,
  headers: Readonly<Record<string, string>>,
  names: readonly string[],
): void => {
  const mutation = writer.mark()
  for (let index = names.length - 1; index >= 0; index--) {
    const name = names[index] ?? ''
    const option = writer.mark()
    writer.int(3, overwriteOrAdd)
    const header = writer.mark()
    writer.latin1(3, headers[name] ?? '')
    writer.utf8(1, name)
    writer.nested(1, header)
    writer.nested(1, option)
  }
  writer.nested(field, mutation)
}

const writeStruct = (
  writer: WireWriter,
  field: number,
  struct: Readonly<Record<string, MetadataValue>>,
  names: readonly string[],
): void => {
  const start = writer.mark()
  for (let index = names.length - 1; index >= 0; index--) {
    const name = names[index] ?? ''
    const entry = writer.mark()
    const value = struct[name] ?? ''
    if (typeof value === 'string') writer.utf8(3, value)
    else writeStruct(writer, 5, value, Object.keys(value))
    writer.nested(2, entry)
    writer.utf8(1, name)
    writer.nested(1, entry)
  }
  writer.nested(field, start)
}
