import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { call, waitForContext } from '../context-api.ts'
import { forEachNumber } from '../for-each-number.ts'

const ttlSeconds = 86_400
const concurrency = 8

const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'The quick brown fox.' }] })

/** Names as clients give them to their conversations. The first turn of a name creates its session. */
export const createNames = (count: number): readonly string[] => Array.from({ length: count }, () => randomUUID())

const response = z.object({ id: z.string(), store: z.literal(true) })

/** Asks for responses that are kept, by questions of this length. Resolves to their ids. */
export const createResponses = async (url: string, count: number, historyBytes: number): Promise<readonly string[]> => {
  const question = 'The quick brown fox jumps over the lazy dog. '
  const input = question.repeat(historyBytes / question.length + 1).slice(0, historyBytes)
  const asked = JSON.stringify({ model: 'bench', max_output_tokens: 16, input })
  const ids: string[] = []
  await forEachNumber(count, concurrency, async () => {
    const headers = { 'x-session-ttl': String(ttlSeconds) }
    const answer = await call(`${url}/v1/responses`, { method: 'POST', headers, body: asked })
    ids.push(response.parse(await answer.json()).id)
  })
  return ids
}

/** Creates sessions through the API and waits until their first turns have ended. Resolves to their ids. */
export const createSessions = async (url: string, count: number): Promise<readonly string[]> => {
  const ids: string[] = []
  await forEachNumber(count, concurrency, async () => {
    const headers = { 'x-session-ttl': String(ttlSeconds) }
    const response = await call(`${url}/v1/context`, { method: 'POST', headers, body })
    const text = await response.text()
    const id = response.headers.get('x-session-id')
    if (!response.ok || id === null) throw new Error(`a session was not created: ${response.status} ${text}`)
    ids.push(id)
    await waitForContext(`${url}/v1/context/${id}`, ({ turns }) => turns > 0)
  })
  return ids
}
