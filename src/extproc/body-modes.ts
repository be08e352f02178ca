import type { BodyMode } from './messages.ts'

/** Envoy's BodySendMode, by its number on the wire. */
export const bodyModes: readonly BodyMode[] = [
  'none',
  'streamed',
  'buffered',
  'buffered-partial',
  'full-duplex-streamed',
  'grpc',
]
