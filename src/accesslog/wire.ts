/** A decoded access log message, as protos/access-log.proto describes it; what was not sent is missing. */
export interface WireMessage {
  readonly http_logs?: { readonly log_entry?: readonly WireEntry[] }
}

export interface WireEntry {
  readonly common_properties?: WireCommon
  readonly request?: { readonly request_headers?: Readonly<Record<string, string>> }
  readonly response?: { readonly response_code?: { readonly value?: number } }
}

export interface WireCommon {
  readonly time_to_last_upstream_tx_byte?: WireDuration
  readonly time_to_first_upstream_rx_byte?: WireDuration
  readonly upstream_remote_address?: { readonly socket_address?: WireSocketAddress }
  readonly response_flags?: Readonly<Record<string, boolean>>
  readonly metadata?: { readonly filter_metadata?: Readonly<Record<string, WireStruct>> }
  readonly access_log_type?: number
}

export interface WireSocketAddress {
  readonly address?: string
  readonly port_value?: number
}

export interface WireDuration {
  readonly seconds?: number
  readonly nanos?: number
}

/** google.protobuf.Struct. */
export interface WireStruct {
  readonly fields?: Readonly<Record<string, WireValue>>
}

/** google.protobuf.Value; `kind` names the member that is set. */
export interface WireValue {
  readonly kind?: string
  readonly stringValue?: string
  readonly numberValue?: number
  readonly boolValue?: boolean
}
