import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { eventually } from '../../support/eventually.ts'

const main = fileURLToPath(new URL('../../../dist/src/main.js', import.meta.url))

let folder: string
let file: string
let admin: string
let log: string
let stop: () => Promise<void>
let hangUp: () => boolean

const yamlOf = (options: { readonly pods: readonly string[]; readonly policy?: string; readonly port?: number }) => `
listen: { extproc: { port: ${options.port ?? 0} }, admin: { port: ${new URL(admin).port} } }
kv: { connector: none }
routing: { pods: [${options.pods.map((pod) => `"${pod}"`).join(', ')}], policy: ${options.policy ?? 'predicted-ttft'} }
`

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reload-'))
  file = join(folder, 'gateway.yaml')
  admin = `http://127.0.0.1:${await freePort()}`
  log = ''
  await writeFile(file, yamlOf({ pods: ['127.0.0.1:1'] }))
  const gateway = spawn(process.execPath, [main, 'serve', '--config', file], { env: {} })
  const ended = new Promise<void>((resolve) => gateway.once('close', () => resolve()))
  gateway.stdout.on('data', (chunk: Buffer) => {
    log += chunk.toString()
  })
  stop = async () => {
    gateway.kill()
    await ended
  }
  hangUp = () => gateway.kill('SIGHUP')
  await eventually(() => log.includes('"msg":"ready"'))
})

afterEach(async () => {
  await stop()
  await rm(folder, { recursive: true })
})

const get = async (path: string): Promise<string> => await (await fetch(`${admin}${path}`)).text()
const podsNow = async (): Promise<readonly string[]> => {
  const { pools } = JSON.parse(await get('/api/pods'))
  return pools[0].pods.map(({ address }: { readonly address: string }) => address)
}

test('a changed file takes over its pods and its policy, without a signal', async () => {
  await writeFile(file, yamlOf({ pods: ['127.0.0.1:1', '127.0.0.1:2'], policy: 'round-robin' }))
  await eventually(async () => expect(await podsNow()).toEqual(['127.0.0.1:1', '127.0.0.1:2']))
  expect(JSON.parse(await get('/config')).routing.policy).toBe('round-robin')
  expect(log).toContain('"changed":["routing.policy","routing.pods"]')
})

test('an option that needs a restart is named, and nothing of the file counts', async () => {
  await writeFile(file, yamlOf({ pods: ['127.0.0.1:2'], port: 4321 }))
  hangUp()
  await eventually(() => log.includes('"needsRestart":["listen.extproc.port"]'))
  expect(JSON.parse(await get('/config')).routing.pods).toEqual(['127.0.0.1:1'])
  expect(await get('/metrics')).toMatch(/config_reloads_total\{result="refused"\} [1-9]/)
})

test('a file that is not valid is named with its line, and a later one is taken over', async () => {
  await writeFile(file, yamlOf({ pods: ['127.0.0.1:2'], policy: 'fastest' }))
  hangUp()
  await eventually(() => log.includes('the new configuration is not valid; the one before stays'))
  expect(log).toMatch(/gateway\.yaml:4/)
  expect(JSON.parse(await get('/config')).routing.pods).toEqual(['127.0.0.1:1'])
  await writeFile(file, yamlOf({ pods: ['127.0.0.1:3'] }))
  await eventually(async () => expect(await podsNow()).toEqual(['127.0.0.1:3']))
})
