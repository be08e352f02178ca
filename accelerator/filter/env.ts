// What Envoy offers a filter, by proxy-wasm's ABI 0.2.1 (the file's name is that of the module from which it is
// imported). Texts are pointers with lengths in bytes; results are 0 for `ok`.

/** The request's headers, where a function asks for a map of headers. */
export const requestHeaders: i32 = 0
/** What Envoy has of the request's body, where a function asks for a buffer. */
export const requestBody: i32 = 0
/** A message from the gateway on a gRPC stream. */
export const grpcMessage: i32 = 5
/** The configuration of this filter in a listener. */
export const pluginConfiguration: i32 = 7
/** The client's side of an exchange. */
export const requestSide: i32 = 0

export const continueIteration: i32 = 0
/** Envoy holds headers and body, up to the route's limit, and reports more of the body. */
export const pauseIteration: i32 = 1
export const counter: i32 = 0
export const noGrpcStatus: i32 = -1
/** A map of no headers. */
export const noHeaders: usize = memory.data(8)
export const noHeadersBytes: i32 = 4

export declare function proxy_get_buffer_bytes(
  kind: i32,
  start: i32,
  length: i32,
  returnAt: usize,
  returnLength: usize,
): i32
export declare function proxy_set_buffer_bytes(kind: i32, start: i32, length: i32, bytes: usize, bytesLength: i32): i32
export declare function proxy_get_property(path: usize, pathLength: i32, returnAt: usize, returnLength: usize): i32
export declare function proxy_set_property(path: usize, pathLength: i32, value: usize, valueLength: i32): i32
export declare function proxy_get_header_map_pairs(map: i32, returnAt: usize, returnLength: usize): i32
export declare function proxy_replace_header_map_value(
  map: i32,
  name: usize,
  nameLength: i32,
  value: usize,
  valueLength: i32,
): i32
export declare function proxy_send_local_response(
  status: i32,
  details: usize,
  detailsLength: i32,
  body: usize,
  bodyLength: i32,
  headers: usize,
  headersLength: i32,
  grpcStatus: i32,
): i32
export declare function proxy_grpc_stream(
  service: usize,
  serviceLength: i32,
  name: usize,
  nameLength: i32,
  method: usize,
  methodLength: i32,
  metadata: usize,
  metadataLength: i32,
  returnToken: usize,
): i32
export declare function proxy_grpc_send(token: u32, message: usize, length: i32, isLast: i32): i32
export declare function proxy_grpc_close(token: u32): i32
export declare function proxy_grpc_cancel(token: u32): i32
export declare function proxy_set_effective_context(id: u32): i32
export declare function proxy_continue_stream(side: i32): i32
export declare function proxy_set_tick_period_milliseconds(milliseconds: i32): i32
export declare function proxy_define_metric(kind: i32, name: usize, nameLength: i32, returnId: usize): i32
export declare function proxy_increment_metric(id: i32, by: i64): i32
