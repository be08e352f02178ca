import { EventEmitter, once } from 'node:events'

/** Events in order, to wait for. */
export interface EventLog {
  readonly events: readonly string[]
  note(event: string): void
  /** Resolves once `event` was noted `count` times. */
  noted(event: string, count?: number): Promise<void>
}

export const createEventLog = (): EventLog => {
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  const events: string[] = []
  const has = (event: string, count: number): boolean => events.filter((noted) => noted === event).length >= count
  return {
    events,
    note: (event) => {
      events.push(event)
      emitter.emit('note')
    },
    noted: async (event, count = 1) => {
      while (!has(event, count)) await once(emitter, 'note')
    },
  }
}
