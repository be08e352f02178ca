import type { Readable } from 'node:stream'

/**
 * Has a stream whose only listener for data was put ahead of others (`prependListener`) hand over what it reads at once. Node notes only listeners that
 * are added behind others; without one it keeps every piece in a list first, and hands it over in a later turn.
 */
export const readAtOnce = (stream: Readable): void => {
  stream.on('data', nothing)
  stream.off('data', nothing)
}

const nothing = (): void => {}
