import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { packageRoot } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { startServer } from '../../../playground/start-server.ts'
import { prints } from '../../../playground/wait-until-ready.ts'

let folder = ''
let program = ''

const npm = async (args: readonly string[], cwd: string): Promise<void> => {
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts']
  const outcome = await runCommand({ command: ['npm', ...args, ...quiet], env: process.env, cwd, timeoutMs: 240_000 })
  if (!outcome.ok) throw new Error(`${outcome.reason}\n${outcome.stderr}`)
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'packed-'))
  await npm(['pack', '--pack-destination', folder], packageRoot())
  const [tarball = ''] = await readdir(folder)
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  await npm(['install', '--omit=optional', join(folder, tarball)], folder)
  program = join(folder, 'node_modules/context-cache-gateway/dist/src/main.js')
}, 300_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

const start = async (
  command: 'serve' | 'run',
  env: Readonly<Record<string, string>>,
): Promise<{ readonly output: () => readonly string[] }> => {
  const child = await startServer({
    name: command,
    command: [process.execPath, program, command],
    env: { ...process.env, ...env },
    cwd: folder,
    ready: prints(/ready/),
  })
  await child.stop({ graceMs: 30_000 })
  return child
}

test('a packed package serves from an empty folder, without optional packages', async () => {
  const [extproc, admin] = [await freePort(), await freePort()]
  const served = await start('serve', {
    CTX_LISTEN_EXTPROC_PORT: String(extproc),
    CTX_LISTEN_ADMIN_PORT: String(admin),
    CTX_TENANT_SECRET: 'a secret of the integration tests that is long enough',
    KV_DIR: folder,
    PODS: '127.0.0.1:1',
  })
  expect(served.output().join('\n')).toContain('"ready"')
})

test('a packed package runs from an empty folder, and writes nothing into the package', async () => {
  const root = join(folder, 'node_modules/context-cache-gateway')
  const before = await readdir(root)
  const ran = await start('run', { GATEWAY_PORT: String(await freePort()), KV_DIR: join(folder, 'kv') })
  expect(ran.output().join('\n')).toMatch(/^ready {2}http/m)
  expect(await readdir(root)).toEqual(before)
}, 300_000)
