import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { packageRoot } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { startServer } from '../../../playground/start-server.ts'
import { prints } from '../../../playground/wait-until-ready.ts'
import { runCommandLine } from '../../support/run-command-line.ts'

test('the files of the image serve, list their packages and hold no playground', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'image-'))
  const command = [join(packageRoot(), 'deploy/image/assemble.sh'), folder] as const
  const env = { ...process.env, npm_config_prefer_offline: 'true' }
  const assembled = await runCommand({ command, env, timeoutMs: 240_000 })
  if (!assembled.ok) throw new Error(`${assembled.reason}\n${assembled.stderr}`)
  const app = join(folder, 'app')
  await rename(join(folder, 'packages/node_modules'), join(app, 'node_modules'))

  const [extproc, admin] = [await freePort(), await freePort()]
  const served = await startServer({
    name: 'serve',
    command: [process.execPath, 'dist/src/main.js', 'serve'],
    cwd: app,
    env: {
      ...process.env,
      CTX_LISTEN_EXTPROC_PORT: String(extproc),
      CTX_LISTEN_ADMIN_PORT: String(admin),
      CONNECTOR: 'prefix-cache',
      PODS: '127.0.0.1:1',
    },
    ready: prints(/"ready"/),
  })
  expect((await fetch(`http://127.0.0.1:${admin}/healthz`)).status).toBe(200)
  const places = ['--admin', `http://127.0.0.1:${admin}`, '--json']
  const examined = await runCommandLine(['doctor', ...places], { packageRoot: app })
  expect(JSON.parse(examined.stdout)).toMatchObject({ findings: [{ check: 'gateway', severity: 'error' }] })
  await served.stop({ graceMs: 30_000 })

  const run = await runCommand({
    command: [process.execPath, 'dist/src/main.js', 'run'],
    cwd: app,
    env: process.env,
    timeoutMs: 30_000,
  })
  expect(run).toMatchObject({ ok: false, stderr: 'run needs the playground, which is not installed here.\n' })
  const optional = ['zeromq', '@kubernetes/client-node'].map((name) => `await import('${name}')`).join('; ')
  const loaded = await runCommand({
    command: [process.execPath, '--input-type=module', '-e', optional],
    cwd: app,
    env: process.env,
    timeoutMs: 30_000,
  })
  expect(loaded).toMatchObject({ ok: true })
  const { components } = JSON.parse(await readFile(join(app, 'sbom.cdx.json'), 'utf8'))
  const names = components.map(({ name }: { readonly name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['@grpc/grpc-js', 'ioredis', 'pino']))
  expect(names).not.toContain('jest')
  await rm(folder, { recursive: true })
})
