import type { ContextService, EndedTurn } from '../context/context-service.ts'
import type { RpcMethod } from '../extproc/transport.ts'
import { loadWireMethod } from '../extproc/wire-methods.ts'
import { parseEntry } from './parse-entry.ts'
import type { WireEntry, WireMessage } from './wire.ts'

/** What an observer of the access log is told. Hooks must not throw. */
export interface AccessLogHooks {
  /** An entry claimed to be a turn's end and could not be read. It is left out. */
  entryMalformed(reason: string): void
  /** `endTurn` rejected, which it should not. */
  fault(error: unknown): void
}

interface AccessLogOptions {
  readonly service: Pick<ContextService, 'endTurn'>
  readonly hooks: AccessLogHooks
}

/** The service's messages as bytes. */
export type AccessLogCodec = Pick<RpcMethod<readonly WireEntry[], never>, 'path' | 'decode' | 'encode'>

/** Envoy's access log service: hands every turn that ended to `service`, and waits for none. The codec is that of protos/ unless given. */
export const createAccessLogMethod = (
  options: AccessLogOptions,
  codec: AccessLogCodec = loadCodec(),
): RpcMethod<readonly WireEntry[], never> => ({
  ...codec,
  longLived: true,
  open: (call) => ({
    message: (entries) => {
      for (const entry of entries) endTurn(entry, options)
    },
    halfClosed: () => call.end({ code: 'ok' }),
    closed: () => {},
  }),
})

const loadCodec = (): AccessLogCodec => {
  const wire = loadWireMethod('access-log.proto', 'envoy.service.accesslog.v3.AccessLogService', 'StreamAccessLogs')
  return {
    path: wire.path,
    decode: (bytes) => (wire.decodeRequest(bytes) as WireMessage).http_logs?.log_entry ?? [],
    encode: (message) => wire.encodeResponse(message),
  }
}

const endTurn = (entry: WireEntry, options: AccessLogOptions): void => {
  const parsed = parseEntry(entry)
  switch (parsed.kind) {
    case 'turn':
      void settle(parsed.turn, options)
      return
    case 'malformed':
      options.hooks.entryMalformed(parsed.reason)
      return
    case 'other':
      return
  }
}

const settle = async (turn: EndedTurn, { service, hooks }: AccessLogOptions): Promise<void> => {
  try {
    await service.endTurn(turn)
  } catch (thrown) {
    hooks.fault(thrown)
  }
}
