import type { AnswerMode, BodyMode } from './messages.ts'

/** Envoy's BodySendMode, by its number on the wire. */
export const bodyModes: readonly BodyMode[] = [
  'none',
  'streamed',
  'buffered',
  'buffered-partial',
  'full-duplex-streamed',
  'grpc',
]

/** Envoy's own word on the body of the response; without one for headers, which it tells of with the body. */
export const answerModeOf = (responseBodyMode: number): AnswerMode => (responseBodyMode === 0 ? 'untold' : 'told')

/** In every other mode Envoy has sent the headers on, or never tells the whole body. */
export const canReadBody = (bodyMode: BodyMode): boolean => bodyMode === 'buffered' || bodyMode === 'unknown'
