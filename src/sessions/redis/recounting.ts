import type { Partitions } from './partitions.ts'

/** First the sessions are gone through, which may have stored KV that is not counted, then the counts, of which some may be of no session. */
const parts = ['sessions', 'counts'] as const

interface Place {
  readonly partition: number
  readonly part: number
  readonly cursor: string
}

const beginning: Place = { partition: 0, part: 0, cursor: '0' }

/**
 * Goes through what is counted of tenants' stored KV, a step at a call, for ever while it has a limit. Resolves to whether
 * the first round goes on.
 */
export const createRecounting = (partitions: Pick<Partitions, 'all'>) => {
  let place = beginning
  let isFirstRound = true

  return async (isLimited: boolean, limit: number): Promise<boolean> => {
    if (!isLimited) {
      place = beginning
      isFirstRound = true
      return false
    }
    const partition = (await partitions.all())[place.partition]
    const part = parts[place.part]
    if (partition === undefined || part === undefined) {
      place = beginning
      isFirstRound = false
      return false
    }
    const cursor = String((await partition.run('recount-kv', [part, place.cursor, limit])).detail)
    if (cursor !== '0') place = { ...place, cursor }
    else if (place.part + 1 < parts.length) place = { ...place, part: place.part + 1, cursor }
    else place = { partition: place.partition + 1, part: 0, cursor }
    return isFirstRound
  }
}
