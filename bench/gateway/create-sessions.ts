import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { call } from '../session-client.ts'

const ttlSeconds = 86_400
const concurrency = 8
const tries = 500
const pauseMs = 20

const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'The quick brown fox.' }] })

/** Creates sessions through the API, waits until their first turns have ended, and writes their ids to a file, one per line. */
export const createSessions = async (options: {
  readonly url: string
  readonly count: number
  readonly file: string
}): Promise<void> => {
  const ids: string[] = []
  const createSome = async (): Promise<void> => {
    while (ids.length < options.count) {
      const id = await createSession(options.url)
      ids.push(id)
      await firstTurnEnded(options.url, id)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, createSome))
  await writeFile(options.file, `${ids.join('\n')}\n`)
}

const createSession = async (url: string): Promise<string> => {
  const headers = { 'x-session-ttl': String(ttlSeconds) }
  const response = await call(`${url}/v1/context`, { method: 'POST', headers, body })
  const text = await response.text()
  const id = response.headers.get('x-session-id')
  if (!response.ok || id === null) throw new Error(`a session was not created: ${response.status} ${text}`)
  return id
}

const context = z.object({ turns: z.number() })

const firstTurnEnded = async (url: string, id: string): Promise<void> => {
  for (let count = 0; count < tries; count += 1) {
    const response = await call(`${url}/v1/context/${id}`, {})
    if (context.parse(await response.json()).turns > 0) return
    await delay(pauseMs)
  }
  throw new Error('the turn that created a session did not end')
}
