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
}, 300_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

test('a packed package runs from an empty folder, without optional packages, and writes nothing into itself', async () => {
  const root = join(folder, 'node_modules/context-cache-gateway')
  const before = await readdir(root)
  const ran = await startServer({
    name: 'run',
    command: [process.execPath, join(root, 'dist/src/main.js'), 'run'],
    env: { ...process.env, GATEWAY_PORT: String(await freePort()), KV_DIR: join(folder, 'kv') },
    cwd: folder,
    ready: prints(/^ready {2}http/),
  })
  await ran.stop({ graceMs: 30_000 })
  expect(await readdir(root)).toEqual(before)
}, 300_000)
