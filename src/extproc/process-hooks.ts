import type { Phase } from './messages.ts'

/** What an observer of the ext_proc streams is told. Hooks must not throw. */
export interface ProcessHooks {
  streamOpened(): void
  /** Once for every `streamOpened`. */
  streamClosed(): void
  /** A message of `phase` got its reply, `milliseconds` after it came. */
  message(phase: Phase, milliseconds: number): void
  /** Something went wrong that is not the client's fault: a decision that threw, a stream out of order, wiring that cannot work. */
  fault(error: unknown): void
}
