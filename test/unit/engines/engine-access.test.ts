import { createServer } from 'node:https'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createEngineHttp, type EngineAccess, type EngineReply } from '../../../src/engines/engine-http.ts'
import { type MadeCertificate, makeCertificate } from '../../support/certificates.ts'
import { listenLocally } from '../../support/local-server.ts'

let certificate: MadeCertificate
let server: ReturnType<typeof createServer>
let pod: string

beforeAll(async () => {
  certificate = await makeCertificate('engine.internal')
  server = createServer(certificate, (request, response) => response.end(request.headers.authorization ?? 'no key'))
  pod = `127.0.0.1:${await listenLocally(server)}`
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const callWith = async (access: EngineAccess): Promise<EngineReply> => {
  const http = createEngineHttp({ callsPerPod: 1, access })
  try {
    return await http.call({ method: 'GET', pod, path: '/', signal: AbortSignal.timeout(5_000) })
  } finally {
    await http.close()
  }
}

const serverName = 'engine.internal'

test.each<[string, (made: MadeCertificate) => EngineAccess, EngineReply['kind'], string]>([
  ['engine of the authority answers', ({ ca }) => ({ tls: { ca, serverName } }), 'answered', 'no key'],
  ['key is sent as a bearer', ({ ca }) => ({ tls: { ca, serverName }, apiKey: 'k1' }), 'answered', 'Bearer k1'],
  ['engine of an unknown authority is not sent the key', () => ({ tls: { serverName }, apiKey: 'k1' }), 'broken', ''],
  ['engine of another name is not sent the key', ({ ca }) => ({ tls: { ca }, apiKey: 'k1' }), 'broken', ''],
  ['engine with TLS does not answer plain HTTP', () => ({}), 'broken', ''],
])('%s', async (_title, access, kind, text) => {
  const reply = await callWith(access(certificate))
  expect(reply.kind).toBe(kind)
  if (reply.kind === 'answered') expect(reply.text).toBe(text)
})
