import type { Redis } from 'ioredis'

/**
 * Tells `onLate` of a connection that is made but not ready for calls within `limitMs`: Redis has not answered what the client itself asks first, such
 * as to be let in. Calls cannot find that out, since each of them fails at once until then.
 */
export const limitHandshakes = (client: Redis, limitMs: number, onLate: () => void): void => {
  let timer: NodeJS.Timeout | undefined
  client.on('connect', () => {
    timer = setTimeout(onLate, limitMs).unref()
  })
  for (const end of ['ready', 'close']) client.on(end, () => clearTimeout(timer))
}
