import type { SessionKey } from '../sessions/session-record.ts'

/** An artefact's name: 22 characters of its session's key, by which a store finds the session, and a unique `rest`. */
export const artefactIdFor = (session: SessionKey, rest: string): string => `${session.slice(0, 22)}${rest}`
