import type { PoolNeed } from './resources.ts'

/** Where work can start, and what it takes there. */
export interface Placement {
  /** Undefined: it runs at no pod of its own. */
  readonly pod: string | undefined
  readonly needs: readonly PoolNeed[]
}

/** What work may ask while it looks for a place. */
export interface Vacancies {
  /** Whether the pod may have room. `isShort`: whether most of the prompt's KV is there, or can be loaded. */
  hasRoom(pod: string, isShort: () => boolean): boolean
  /** Whether all of it is free, and not reserved for work ahead. */
  fits(needs: readonly PoolNeed[]): boolean
}

/** A piece of work that needs room at a pod, resources, or both. */
export interface QueuedWork {
  readonly id: string
  /** 1 goes first. */
  readonly priority: number
  /** Of one priority, tenants take turns. */
  readonly tenant: string
  /** It goes before other work, since it takes a small part of the time. */
  readonly isShort: boolean
  /** Chooses a place; undefined: no pod has room. Called again when something comes free. */
  place(vacancies: Vacancies): Placement | undefined
  /** Until then it may leave room to others. By the queue's clock. Default: it takes any. */
  readonly holdsOutUntilMs?: number
  /** When it arrived, by the queue's clock. Work that did not find room keeps its time when it comes back. */
  readonly arrivedMs: number
  /** How long it waits for resources at most, milliseconds from its arrival. Then it is refused. */
  readonly resourcesWaitMs: number
  /** How long it waits for room at most, milliseconds from its arrival. Then it goes on without. */
  readonly roomWaitMs: number
}
