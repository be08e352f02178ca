import { createHash } from 'node:crypto'

/** One token per character, so that tests can count. */
export const tokenize = (text: string): readonly number[] =>
  Array.from(text, (char) => (char.codePointAt(0) ?? 0) + 256)

export interface SimMessage {
  readonly role: string
  readonly content: string
}

/** The fleet's chat template. */
export const chatText = (messages: readonly SimMessage[]): string =>
  `${messages.map(({ role, content }) => `<${role}>${content}\n`).join('')}<assistant>`

/** The answer to a prompt: always the same one, and another one for another prompt. */
export const answerTo = (prompt: readonly number[], count: number): readonly number[] => {
  const digest = createHash('sha256').update(Int32Array.from(prompt)).digest()
  return Array.from({ length: count }, (_none, at) => 256 + 97 + ((digest[at % digest.length] ?? 0) % 26))
}

export const textOf = (tokens: readonly number[]): string =>
  tokens.map((token) => String.fromCodePoint(token - 256)).join('')
