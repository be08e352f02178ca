import type { ContextCacheManager } from '../context/context-cache-manager.ts'
import { loadProtoMethod } from '../protobuf/load-proto-method.ts'
import { parseEntry } from './parse-entry.ts'

/** Callbacks for metrics and logs. They must not throw. */
export interface AccessLogHooks {
  /** An entry that claims to be the end of a turn cannot be parsed. It is skipped. */
  entryMalformed(reason: string): void
  /** The service rejected, which it should not. */
  fault(error: unknown): void
}

interface AccessLogOptions {
  readonly service: Pick<ContextCacheManager, 'endTurn' | 'clientDisconnected'>
  readonly hooks: AccessLogHooks
}

/** Envoy writes 16 KiB and one entry, which has some KiB. */
const maxBatchBytes = 32_768

/**
 * OpenTelemetry's log service (Export), to which Envoy writes its access log: passes every turn that ended and every
 * client that disconnected to `service`, and waits for neither. Envoy sends a batch without a response again.
 */
export const createAccessLog = (options: AccessLogOptions) => {
  const method = loadProtoMethod('log-export.proto', 'opentelemetry.proto.collector.logs.v1.LogsService', 'Export', {
    maxBytes: maxBatchBytes,
  })
  return {
    path: method.path,
    decode: (bytes: Buffer) => entriesOf(method.decodeRequest(bytes) as WireBatch),
    encode: (message: object) => method.encodeResponse(message),
    answer: (entries: readonly string[]): object => {
      for (const entry of entries) take(entry, options).catch((thrown: unknown) => options.hooks.fault(thrown))
      return {}
    },
  }
}

/** An ExportLogsServiceRequest; fields that were not sent are missing. */
interface WireBatch {
  readonly resource_logs?: readonly {
    readonly scope_logs?: readonly {
      readonly log_records?: readonly { readonly body?: { readonly string_value?: string } }[]
    }[]
  }[]
}

/** The texts of all records, empty for a record without one. */
const entriesOf = (batch: WireBatch): readonly string[] =>
  (batch.resource_logs ?? [])
    .flatMap(({ scope_logs }) => scope_logs ?? [])
    .flatMap(({ log_records }) => log_records ?? [])
    .map(({ body }) => body?.string_value ?? '')

/** Rejects when the service rejects or throws. */
const take = async (entry: string, { service, hooks }: AccessLogOptions): Promise<void> => {
  const parsed = parseEntry(entry)
  switch (parsed.kind) {
    case 'turn':
      return await service.endTurn(parsed.turn)
    case 'disconnected':
      return await service.clientDisconnected(parsed.requestKey)
    case 'malformed':
      hooks.entryMalformed(parsed.reason)
      return
    case 'other':
      return
  }
}
