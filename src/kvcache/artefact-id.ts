import type { SessionKey } from '../sessions/session-record.ts'

/** So much of its session's key an artefact's name begins with. */
const sessionCharacters = 22

/** Name of an artefact. A store finds the session by its beginning; `rest` is unique within the session. */
export const artefactIdFor = (session: SessionKey, rest: string): string =>
  `${session.slice(0, sessionCharacters)}${rest}`
