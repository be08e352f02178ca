import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { findStartProblems } from '../../../src/app/find-start-problems.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { eventually } from '../../support/eventually.ts'
import { listenLocally } from '../../support/local-server.ts'

test('a client that connects while a port is tried is not left without an answer', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'start-problems-'))
  const asked = createServer()
  const storeModule = join(folder, 'store.mjs')
  const waits = `await once(connect(${await listenLocally(asked)}, '127.0.0.1'), 'close')`
  const imports = "import { once } from 'node:events'\nimport { connect } from 'node:net'"
  await writeFile(storeModule, `${imports}\n${waits}\n`)
  const port = await freePort()
  const environment = {
    PODS: '127.0.0.1:1',
    KV_DIR: folder,
    CTX_KV_STORE_MODULE: storeModule,
    CTX_LISTEN_ADMIN_PORT: `${port}`,
  }
  const loading = once(asked, 'connection')
  // The ports are tried for as long as the module loads.
  const problems = findStartProblems(loadConfig({ environment }).groups, 'start')
  const [loader] = await loading

  const client = await eventually(async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket.on('error', () => {}).resume()
  })
  await once(client, 'close')

  loader.destroy()
  asked.close()
  expect(await problems).toHaveLength(1)
  await rm(folder, { recursive: true })
})
