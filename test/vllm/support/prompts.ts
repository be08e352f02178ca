import { randomBytes } from 'node:crypto'

const words = 'time house river stone light paper window garden number letter engine circle market summer winter'.split(
  ' ',
)

/** A prompt of about so many tokens that no other call gives. */
export const freshPrompt = (tokens: number): string => {
  const bytes = randomBytes(tokens)
  // A word of these and its space are about two tokens of the small model's vocabulary.
  return Array.from({ length: Math.ceil(tokens / 2) }, (_, index) => words[(bytes[index] ?? 0) % words.length]).join(
    ' ',
  )
}

/** A name that no other call gives, in hexadecimal digits: for a salt, or a credential of a new tenant. */
export const freshSalt = (): string => randomBytes(8).toString('hex')
