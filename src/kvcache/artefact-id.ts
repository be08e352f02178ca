import type { SessionKey } from '../sessions/session-record.ts'

/** So much of its session's key an artefact's name begins with. */
const sessionCharacters = 22

/** Name of an artefact: a store finds its session by what it begins with, and `rest` tells it from the session's others. */
export const artefactIdFor = (session: SessionKey, rest: string): string =>
  `${session.slice(0, sessionCharacters)}${rest}`
