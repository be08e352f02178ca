import { createHash } from 'node:crypto'

const letters = 'abcdefghijklmnopqrstuvwxyz      '

/** `length` characters of something like text, the same for the same seed and different from the first character on for another. */
export const words = (seed: string, length: number): string => {
  let text = ''
  for (let block = 0; text.length < length; block += 1) {
    for (const byte of createHash('sha256').update(`${seed}\n${block}`).digest()) text += letters[byte % letters.length]
  }
  return text.slice(0, length).replace(/ $/, 'x')
}
