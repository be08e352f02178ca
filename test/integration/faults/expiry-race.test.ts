import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { cacheLine, create, createdId, look, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** Moves the clock of a Node process. */
const clockOffBy = (milliseconds: number): Readonly<Record<string, string>> => {
  const script = `
    const Real = Date
    globalThis.Date = class extends Real {
      constructor(...values) { super(...(values.length === 0 ? [Real.now() + ${milliseconds}] : values)) }
      static now() { return Real.now() + ${milliseconds} }
    }`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` }
}

const hourMs = 3_600_000
const body = { model: 'scripted', prompt: 'hello' }

describe.each([
  { clock: 'an hour ahead', offByMs: hourMs, store: 'redis' },
  { clock: 'right', offByMs: 0, store: 'memory' },
] as const)('a gateway whose clock is $clock, with the $store store', ({ offByMs, store }) => {
  const { pod, stack } = useScriptedStack({ store, env: clockOffBy(offByMs) })

  const ttlSeconds = 5

  /** Creates a session, and uses it once, so long after its deadline (or before, if negative). */
  const useAround = async (offsetMs: number) => {
    const created = await create(stack, { body, headers: { 'x-session-ttl': String(ttlSeconds) } })
    const id = created.headers.get('x-session-id') ?? ''
    const deadlineMs = Date.parse(created.headers.get('x-session-expires-at') ?? '')
    await delay(Math.max(0, deadlineMs + offsetMs - Date.now()))
    const sentMs = Date.now()
    const response = await use(stack, id, { body })
    const answeredMs = Date.now()
    const line = cacheLine(response)
    const expiresAtMs = Date.parse(response.headers.get('x-session-expires-at') ?? '')
    return { id, status: response.status, line, deadlineMs, sentMs, answeredMs, expiresAtMs }
  }

  const active = 'none; reason=no_connector'
  const expired = 'miss; reason=session_expired'

  test('the store alone decides whether a turn comes in time, and a session that begins anew lives as long as before', async () => {
    // The first ones are sent at once, in time on a busy machine, too.
    const offsets = Array.from({ length: 60 }, (_, index) => (index < 5 ? -ttlSeconds * 1000 : -150 + index * 5))

    const turns = await Promise.all(offsets.map((offsetMs) => useAround(offsetMs)))

    const wrong = turns.filter(({ status, line, deadlineMs, sentMs, answeredMs, expiresAtMs }) => {
      if (status !== 200 || (line !== active && line !== expired)) return true
      if (sentMs >= deadlineMs && line === active) return true
      if (answeredMs < deadlineMs && line === expired) return true
      return line === active ? expiresAtMs !== deadlineMs : expiresAtMs < deadlineMs + ttlSeconds * 1000
    })
    expect(wrong).toEqual([])
    expect(new Set(turns.map(({ line }) => line))).toEqual(new Set([active, expired]))
    const [anew] = turns.filter(({ line }) => line === expired).slice(-1)
    const seen = await eventually(() => view(stack, anew?.id ?? ''))
    // Its time starts at the end of that turn, a little after its response, maybe in the next second.
    const atLatest = Math.floor(Date.now() / 1000) + ttlSeconds
    expect(seen).toMatchObject({ turns: 1, ttl: ttlSeconds, expires_at: seen.created_at + ttlSeconds })
    expect(seen.expires_at).toBeGreaterThanOrEqual(Math.floor((anew?.expiresAtMs ?? Number.NaN) / 1000))
    expect(seen.expires_at).toBeLessThanOrEqual(atLatest)
    // What came in time is over with its last turn.
    for (const { id, line } of turns.filter((turn) => turn.line === active)) {
      await eventually(async () =>
        expect({ line, status: (await look(stack, id)).status }).toEqual({ line, status: 404 }),
      )
    }
  })

  test('a turn that runs when the deadline passes ends, and counts', async () => {
    const id = await createdId(stack, { body, headers: { 'x-session-ttl': String(ttlSeconds) } })
    const { expires_at: expiresAt } = await untilTurns(stack, id, 1)
    pod.next(async (request, reply) => {
      await delay(Math.max(0, (expiresAt + 1) * 1000 - Date.now()))
      expect(request.headers['x-session-id']).toBe(id)
      reply.json(200, { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })
    })

    const response = await use(stack, id, { body, headers: { 'x-session-ttl': '600' } })

    expect(response.status).toBe(200)
    expect(cacheLine(response)).toBe(active)
    await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2, ttl: 600 }))
  })
})
