import type { ContextService } from '../context/context-service.ts'
import type { RpcMethod } from '../extproc/transport.ts'
import { loadWireMethod } from '../extproc/wire-methods.ts'
import { parseEntry } from './parse-entry.ts'
import type { WireEntry, WireMessage } from './wire.ts'

/** What an observer of the access log is told. Hooks must not throw. */
export interface AccessLogHooks {
  /** An entry claimed to be a turn's end and could not be read. It is left out. */
  entryMalformed(reason: string): void
  /** The service rejected, which it should not. */
  fault(error: unknown): void
}

interface AccessLogOptions {
  readonly service: Pick<ContextService, 'endTurn' | 'clientLeft'>
  readonly hooks: AccessLogHooks
}

/** The service's messages as bytes. */
export type AccessLogCodec = Pick<RpcMethod<readonly WireEntry[], never>, 'path' | 'decode' | 'encode'>

/** Envoy's access log service: tells `service` of every turn that ended and every request that was left, and waits for none. The codec is that of protos/ unless given. */
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
      void settle(() => options.service.endTurn(parsed.turn), options.hooks)
      return
    case 'left':
      void settle(() => options.service.clientLeft(parsed.requestKey), options.hooks)
      return
    case 'malformed':
      options.hooks.entryMalformed(parsed.reason)
      return
    case 'other':
      return
  }
}

const settle = async (end: () => Promise<void>, hooks: AccessLogHooks): Promise<void> => {
  try {
    await end()
  } catch (thrown) {
    hooks.fault(thrown)
  }
}
