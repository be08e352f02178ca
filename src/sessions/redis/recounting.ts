import type { ScriptReply } from './session-script-runner.ts'

type Part = 'sessions' | 'counts'

/**
 * Goes through what is counted of tenants' stored KV, a step at a call, for ever while it has a limit. First through the
 * sessions, which may have stored KV that is not counted, then through the counts, of which some may be of no session.
 * Resolves to whether the first round goes on.
 */
export const createRecounting = (step: (part: Part, cursor: string, limit: number) => Promise<ScriptReply>) => {
  const beginning = { part: 'sessions', cursor: '0' } as const
  let place: { readonly part: Part; readonly cursor: string } = beginning
  let isFirstRound = true

  return async (isLimited: boolean, limit: number): Promise<boolean> => {
    if (!isLimited) {
      place = beginning
      isFirstRound = true
      return false
    }
    const { part } = place
    const cursor = String((await step(part, place.cursor, limit)).detail)
    if (cursor !== '0') place = { part, cursor }
    else {
      place = { part: part === 'sessions' ? 'counts' : 'sessions', cursor }
      if (part === 'counts') isFirstRound = false
    }
    return isFirstRound
  }
}
