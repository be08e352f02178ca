import type { EngineHttp } from './engine-http.ts'

/**
 * The text with which an engine answers a question: a GET, or a POST with a body. Undefined: it has no such path (404,
 * or 501 where an option of the engine is missing).
 * @throws Error that names the path, when the engine does not answer, or with another status than 200
 */
export const askEngine = async (
  http: EngineHttp,
  question: { readonly pod: string; readonly path: string; readonly body?: unknown; readonly signal: AbortSignal },
): Promise<string | undefined> => {
  const method = question.body === undefined ? 'GET' : 'POST'
  const asked = `${method} ${question.path}`
  const reply = await http.call({ method, ...question })
  if (reply.kind !== 'answered') {
    throw new Error(`the engine does not answer ${asked}: ${String(reply.cause)}`, { cause: reply.cause })
  }
  if (reply.status === 404 || reply.status === 501) return undefined
  // The engine's own text, without anything of a prompt; it is cut short all the same.
  if (reply.status !== 200) {
    throw new Error(`the engine answered ${asked} with status ${reply.status}: ${reply.text.slice(0, 200)}`)
  }
  return reply.text
}
