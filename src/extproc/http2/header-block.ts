/** A block of headers may go over this many frames, and hold this much in all; more than any client in good order needs. */
const maxFrames = 64
const maxBlockBytes = 131_072

/** A block of headers whose end has not come. Nothing else may come on its connection meanwhile. */
export class HeaderBlock {
  readonly streamId: number
  readonly endStream: boolean
  /** The stream was declared to depend on itself. */
  readonly selfDependent: boolean
  readonly #fragments: Buffer[]
  #bytes: number

  constructor(
    streamId: number,
    options: { readonly endStream: boolean; readonly selfDependent: boolean },
    first: Buffer,
  ) {
    this.streamId = streamId
    this.endStream = options.endStream
    this.selfDependent = options.selfDependent
    this.#fragments = [first]
    this.#bytes = first.length
  }

  /** False when it is too much. */
  add(fragment: Buffer): boolean {
    this.#fragments.push(fragment)
    this.#bytes += fragment.length
    return this.#fragments.length <= maxFrames && this.#bytes <= maxBlockBytes
  }

  /** The whole block; without a copy where it came so. */
  join(): Buffer {
    const [only] = this.#fragments
    return this.#fragments.length === 1 && only !== undefined ? only : Buffer.concat(this.#fragments, this.#bytes)
  }
}
