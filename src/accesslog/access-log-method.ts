import type { ContextCacheManager } from '../context/context-cache-manager.ts'
import type { RpcMethod } from '../extproc/transport.ts'
import { createUnaryMethod } from '../extproc/unary-method.ts'
import { loadWireMethod } from '../extproc/wire-methods.ts'
import { parseEntry } from './parse-entry.ts'
import { entriesOf, type LogEntry, type WireBatch } from './wire.ts'

/** What an observer of the access log is told. Hooks must not throw. */
export interface AccessLogHooks {
  /** An entry claimed to be a turn's end and could not be read. It is left out. */
  entryMalformed(reason: string): void
  /** The service rejected, which it should not. */
  fault(error: unknown): void
}

interface AccessLogOptions {
  readonly service: Pick<ContextCacheManager, 'endTurn' | 'clientDisconnected'>
  readonly hooks: AccessLogHooks
}

/** The service's messages as bytes. */
export type AccessLogCodec = Pick<RpcMethod<readonly LogEntry[], object>, 'path' | 'decode' | 'encode'>

/**
 * OpenTelemetry's log service, to which Envoy writes its access log: tells `service` of every turn that ended and every request that was left, and
 * waits for none. A batch that is not answered comes again. The codec is that of protos/ unless given.
 */
export const createAccessLogMethod = (
  options: AccessLogOptions,
  codec: AccessLogCodec = loadCodec(),
): RpcMethod<readonly LogEntry[], object> =>
  createUnaryMethod({
    ...codec,
    answer: (entries) => {
      for (const entry of entries) endTurn(entry, options)
      return { kind: 'message', message: taken }
    },
  })

const taken = Object.freeze({})

const loadCodec = (): AccessLogCodec => {
  const wire = loadWireMethod('log-export.proto', 'opentelemetry.proto.collector.logs.v1.LogsService', 'Export')
  return {
    path: wire.path,
    decode: (bytes) => entriesOf(wire.decodeRequest(bytes) as WireBatch),
    encode: (message) => wire.encodeResponse(message),
  }
}

const endTurn = (entry: LogEntry, options: AccessLogOptions): void => {
  const parsed = parseEntry(entry)
  switch (parsed.kind) {
    case 'turn':
      void settle(() => options.service.endTurn(parsed.turn), options.hooks)
      return
    case 'left':
      void settle(() => options.service.clientDisconnected(parsed.requestKey), options.hooks)
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
