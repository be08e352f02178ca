import type { ContextEvents } from '../../src/context/context-events.ts'

/** ContextEvents that records its calls. */
export interface RecordedEvents {
  readonly events: ContextEvents
  /** The arguments of all calls of one event, in their order. */
  of<Name extends keyof ContextEvents>(name: Name): readonly Parameters<ContextEvents[Name]>[]
}

export const createRecordedEvents = (): RecordedEvents => {
  const calls = new Map<PropertyKey, unknown[][]>()
  const recorder =
    (name: PropertyKey) =>
    (...what: unknown[]): void => {
      calls.set(name, [...(calls.get(name) ?? []), what])
    }
  return {
    events: new Proxy({} as ContextEvents, { get: (_, name) => recorder(name) }),
    of: <Name extends keyof ContextEvents>(name: Name) =>
      (calls.get(name) ?? []) as unknown as readonly Parameters<ContextEvents[Name]>[],
  }
}
