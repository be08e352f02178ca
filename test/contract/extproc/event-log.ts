import { eventually } from '../../support/eventually.ts'

export type EventLog = ReturnType<typeof createEventLog>

/** Events in order, to wait for. */
export const createEventLog = () => {
  const events: string[] = []
  return {
    events,
    note: (event: string): void => void events.push(event),
    /** Resolves once `event` was noted `count` times. */
    noted: (event: string, count = 1) => eventually(() => events.filter((noted) => noted === event).length >= count),
  }
}
