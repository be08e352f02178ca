import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createEngineHttp, type EngineHttp } from '../../../src/kvcache/engine-http.ts'

let server: Server
let http: EngineHttp
let pod: string
let connections: number
const received: { readonly type: string | undefined; readonly text: string }[] = []

const textOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

beforeEach(async () => {
  connections = 0
  received.length = 0
  server = createServer((request, response) => {
    void textOf(request).then((text) => {
      received.push({ type: request.headers['content-type'], text })
      response.end('done')
    })
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  pod = `127.0.0.1:${(server.address() as AddressInfo).port}`
  http = createEngineHttp({ callsPerPod: 1 })
})
afterEach(async () => {
  await http.close()
  server.closeAllConnections()
  server.close()
})

test.each([
  { name: 'a value', body: { a: ['ü', 1] }, sent: '{"a":["ü",1]}' },
  { name: 'bytes, which are JSON already', body: Buffer.from('{"a":2}'), sent: '{"a":2}' },
])('an engine is sent $name', async ({ body, sent }) => {
  const reply = await http.call({ method: 'POST', pod, path: '/', body, signal: AbortSignal.timeout(5_000) })
  expect(reply).toEqual({ kind: 'answered', status: 200, text: 'done' })
  expect(received).toEqual([{ type: 'application/json', text: sent }])
})

test.each(['POST', 'DELETE'] as const)('%s with a body leaves its connection to the next call', async (method) => {
  for (let call = 0; call < 5; call += 1) {
    await http.call({ method, pod, path: '/', body: { call }, signal: AbortSignal.timeout(5_000) })
  }
  expect(received).toHaveLength(5)
  expect(connections).toBe(1)
})
