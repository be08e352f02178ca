import { SlotMap } from '../../collections/slot-map.ts'
import type { ServerStream } from './server-stream.ts'

/** Streams that were reset by this side: what crosses the reset on the wire is no fault of the client's. */
const rememberedResets = 4096

/** Clients number their streams with odd numbers, one after the other. */
const hashOf = (id: number): number => id >>> 1

/** The streams of one connection: open, gone, and not yet begun. */
export class StreamTable {
  readonly #open = new SlotMap<number, ServerStream>({ hashOf })
  readonly #reset = new SlotMap<number, true>({ hashOf, maxEntries: rememberedResets })
  #highest = 0

  get size(): number {
    return this.#open.size
  }

  /** The highest stream that the client has begun. */
  get highest(): number {
    return this.#highest
  }

  get(id: number): ServerStream | undefined {
    return this.#open.get(id)
  }

  all(): readonly ServerStream[] {
    const streams: ServerStream[] = []
    this.#open.forEach((stream) => void streams.push(stream))
    return streams
  }

  /** The client has begun a stream. */
  begin(id: number): void {
    this.#highest = id
  }

  /** Not begun yet, so that only HEADERS and PRIORITY may name it. */
  isIdle(id: number): boolean {
    return id > this.#highest || id % 2 === 0
  }

  add(stream: ServerStream): void {
    this.#open.set(stream.id, stream)
  }

  remove(id: number): void {
    this.#open.delete(id)
  }

  rememberReset(id: number): void {
    this.#reset.set(id, true)
  }

  wasReset(id: number): boolean {
    return this.#reset.has(id)
  }
}
