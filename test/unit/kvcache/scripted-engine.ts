import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closeAtOnce, listenLocally } from '../../support/local-server.ts'

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export interface ScriptedEngine {
  readonly pod: string
  /** `GET /slots` and the like, as they came in. */
  readonly requests: readonly string[]
  close(): Promise<void>
}

/** A server that answers what the test says. */
export const startScriptedEngine = async (answer: Answer): Promise<ScriptedEngine> => {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  return {
    pod: `127.0.0.1:${await listenLocally(server)}`,
    requests,
    close: () => closeAtOnce(server),
  }
}

export const json =
  (value: unknown, status = 200): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(value))
  }
