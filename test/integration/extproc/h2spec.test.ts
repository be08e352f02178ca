import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { runCommand } from '../../../playground/run-command.ts'
import { createHttp2Server } from '../../../src/extproc/http2/create-http2-server.ts'
import type { RpcServer } from '../../../src/extproc/transport.ts'
import { createSeamLog, createSeamMethods } from '../../contract/extproc/seam-methods.ts'
import { findH2spec } from './find-h2spec.ts'

jest.setTimeout(300_000)

const h2spec = await findH2spec()
if (!h2spec.found) console.log(`h2spec left out: ${h2spec.reason}`)

/** Every case waits for up to two seconds. */
const runTimeoutMs = 280_000

;(h2spec.found ? describe : describe.skip)('h2spec', () => {
  let server: RpcServer
  let port: number
  beforeAll(async () => {
    server = createHttp2Server({
      listen: { host: '127.0.0.1', port: 0 },
      methods: createSeamMethods(createSeamLog()),
      maxMessageBytes: 1_000_000,
      maxConcurrentStreams: 100,
      onFault: () => {},
    })
    const address = await server.start()
    if (!('port' in address)) throw new Error('not a port')
    port = address.port
  })
  afterAll(() => server.stop())

  test('finds nothing wrong with the HTTP/2 server', async () => {
    const program = h2spec.found ? h2spec.path : ''
    const outcome = await runCommand({
      command: [program, '-h', '127.0.0.1', '-p', String(port)],
      env: process.env,
      timeoutMs: runTimeoutMs,
    })

    const summary = outcome.ok ? outcome.stdout.trim().split('\n').at(-1) : outcome
    expect(summary).toMatch(/^(\d+) tests, \1 passed, 0 skipped, 0 failed$/)
  })
})
