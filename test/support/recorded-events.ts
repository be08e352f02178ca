import type { ContextEvents } from '../../src/context/context-events.ts'

/** ContextEvents that remembers what it was told. */
export interface RecordedEvents {
  readonly events: ContextEvents
  /** What the events of one name told, in their order. */
  of<Name extends keyof ContextEvents>(name: Name): readonly Parameters<ContextEvents[Name]>[]
}

export const createRecordedEvents = (): RecordedEvents => {
  const told = new Map<PropertyKey, unknown[][]>()
  const recorder =
    (name: PropertyKey) =>
    (...what: unknown[]): void => {
      told.set(name, [...(told.get(name) ?? []), what])
    }
  return {
    events: new Proxy({} as ContextEvents, { get: (_, name) => recorder(name) }),
    of: <Name extends keyof ContextEvents>(name: Name) =>
      (told.get(name) ?? []) as unknown as readonly Parameters<ContextEvents[Name]>[],
  }
}
