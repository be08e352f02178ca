import { encodeGrpcMessage, type GrpcStatus, grpcCode } from './grpc-status.ts'

/** Statuses say what happened in a few words; longer ones are cut, so that a block of headers always fits into one frame. */
const maxMessageLength = 1024

/** HPACK literals that enter no table, so that no state is kept for what is sent: as short as 127 characters at most, or longer. */
const literal = (name: Buffer, value: string): Buffer =>
  Buffer.concat([name, lengthOf(value.length), Buffer.from(value, 'latin1')])

const lengthOf = (length: number): Buffer => {
  if (length < 0x7f) return Buffer.from([length])
  const bytes = [0x7f]
  let rest = length - 0x7f
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80)
  return Buffer.from([...bytes, rest])
}

const newName = (name: string): Buffer => Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name, 'latin1')])

/** Names of HPACK's static table: `:status` is 8, `content-type` 31. */
const statusName = Buffer.from([8])
const contentTypeName = Buffer.from([0x0f, 31 - 0x0f])
const status200 = Buffer.from([0x80 + 8])
const grpcStatusName = newName('grpc-status')
const grpcMessageName = newName('grpc-message')

/** What an answer begins with. */
export const responseBlock: Buffer = Buffer.concat([status200, literal(contentTypeName, 'application/grpc')])

const okTrailers = literal(grpcStatusName, '0')

/** What an answer ends with. */
export const trailersBlock = ({ code, message }: GrpcStatus): Buffer => {
  if (code === grpcCode.ok) return okTrailers
  const status = literal(grpcStatusName, String(code))
  return message === ''
    ? status
    : Buffer.concat([status, literal(grpcMessageName, encodeGrpcMessage(message.slice(0, maxMessageLength)))])
}

/** The headers of an answer to what is no gRPC; its body is text. */
export const httpErrorBlock = (status: number): Buffer =>
  Buffer.concat([literal(statusName, String(status)), literal(contentTypeName, 'text/plain')])
