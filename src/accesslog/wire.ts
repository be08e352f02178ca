/** A decoded batch of OpenTelemetry log records, as protos/log-export.proto describes it; what was not sent is missing. */
export interface WireBatch {
  readonly resource_logs?: readonly {
    readonly scope_logs?: readonly { readonly log_records?: readonly WireRecord[] }[]
  }[]
}

export interface WireRecord {
  readonly body?: { readonly string_value?: string }
}

/** The text of a record's body; an empty one for what is none. */
export type LogEntry = string

/** All entries of a batch. */
export const entriesOf = (batch: WireBatch): readonly LogEntry[] =>
  (batch.resource_logs ?? [])
    .flatMap(({ scope_logs }) => scope_logs ?? [])
    .flatMap(({ log_records }) => log_records ?? [])
    .map(({ body }) => body?.string_value ?? '')
