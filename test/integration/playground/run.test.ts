import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { type ManagedChild, startChild } from '../../../playground/child-process.ts'
import { freePort } from '../../../playground/free-port.ts'
import { packageRoot } from '../../../playground/paths.ts'
import { prints, waitUntilReady } from '../../../playground/wait-until-ready.ts'
import { eventually } from '../../support/eventually.ts'
import { isAlive } from './support.ts'

const running: ManagedChild[] = []
const folders: string[] = []

/** Starts `context-cache-gateway run`. */
const begin = async (
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly child: ManagedChild; readonly url: string }> => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'run-'))
  folders.push(folder)
  const child = await startChild({
    name: 'run',
    command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'run'],
    env: { ...process.env, GATEWAY_PORT: String(port), XDG_STATE_HOME: folder, ...env },
  })
  running.push(child)
  return { child, url: `http://127.0.0.1:${port}` }
}

/** Waits for the line that says it is ready. */
const run: typeof begin = async (env) => {
  const started = await begin(env)
  await waitUntilReady(started.child, prints(/^ready {2}http/))
  return started
}

/** Two pods, the gateway and Envoy, as the kernel knows them. */
const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)

afterEach(async () => {
  await Promise.all(running.splice(0).map((child) => child.stop({ graceMs: 30_000 })))
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
})

const headers = { authorization: 'Bearer test-key-1234567890', 'content-type': 'application/json' }
const send = (url: string, path: string, more: Readonly<Record<string, string>>): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: { ...headers, ...more },
    body: JSON.stringify({ model: 'tiny-random', prompt: 'Say this is a test', max_tokens: 5 }),
  })
const createSession = async (url: string): Promise<string> =>
  (await send(url, '/v1/context', { 'x-session-ttl': '3600' })).headers.get('x-session-id') ?? ''
/** Creates one where a busy machine may take longer than Envoy waits. */
const session = (url: string) => eventually(async () => (await createSession(url)) || false)
/** What `x-context-cache` says of a turn; empty while there is no answer. */
const turn = async (url: string, id: string): Promise<string> => {
  const response = await send(url, '/v1/completions', { 'x-session-id': id }).catch(() => undefined)
  return (response?.status === 200 && response.headers.get('x-context-cache')) || ''
}

/** How the command lines are told apart; words are separated by NUL. Redis writes its own. */
const servers = {
  'pod-b': /--name\0pod-b\0/,
  gateway: /main\.js\0serve/,
  envoy: /envoy\.yaml/,
  redis: /(redis|valkey)-server/,
} as const

/** Ends a server of a run by SIGKILL. */
const kill = ({ pid }: ManagedChild, name: keyof typeof servers): void => {
  const found = childrenOf(pid).find((child) => servers[name].test(readFileSync(`/proc/${child}/cmdline`, 'utf8')))
  if (found === undefined) throw new Error(`${name} does not run`)
  process.kill(found, 'SIGKILL')
}

describe('context-cache-gateway run', () => {
  test('serves from its line "ready" on, starts a gateway again whose sessions are gone, and leaves no process behind', async () => {
    const { child, url } = await run()
    const id = await createSession(url)
    const cache = await turn(url, id)
    const deleted = await fetch(`${url}/v1/context/${id}`, { method: 'DELETE', headers })

    expect(id).toMatch(/^ctx_/)
    expect(cache).toMatch(/^(hit|miss)/)
    expect(deleted.status).toBe(200)
    expect(child.output().join('\n')).toContain('Ctrl-C ends everything')
    const [, console = ''] = / {2}console (\S+)/.exec(child.output().join('\n')) ?? []
    expect(await (await fetch(console)).text()).toContain('<title>Context Cache Gateway</title>')

    const lost = await session(url)
    kill(child, 'gateway')
    await eventually(async () => (await turn(url, lost)) === 'miss; reason=session_not_found')
    const another = await session(url)
    await eventually(async () => (await turn(url, another)).startsWith('hit'))
    const news =
      'gateway ended by SIGKILL, restarting; its sessions were in memory and are gone (make run REDIS=1 keeps them)'
    expect(child.output().filter((line) => line.includes('restarting'))).toEqual([news])

    const pids = childrenOf(child.pid)
    const exit = await child.stop({ graceMs: 30_000 })

    expect(exit).toEqual({ code: 0, signal: undefined })
    expect(pids.length).toBeGreaterThanOrEqual(4)
    await eventually(() => !pids.some(isAlive))
  })

  test('SIGTERM during the start ends it, and nothing is started afterwards', async () => {
    const { child } = await begin()
    await waitUntilReady(child, prints(/^starting pod-a/))
    const pids = childrenOf(child.pid)
    const exit = await child.stop({ graceMs: 30_000 })
    expect(exit).toEqual({ code: 0, signal: undefined })
    expect(child.output().filter((line) => line.startsWith('ready'))).toEqual([])
    await eventually(() => !pids.some(isAlive))
  })

  test('a mistake in the configuration is told once', async () => {
    const { child } = await begin({ CTX_LOG_LEVLE: 'debug' })
    expect(await child.exited).toEqual({ code: 1, signal: undefined })
    expect(child.output().filter((line) => line.includes('LEVLE'))).toEqual([
      'CTX_LOG_LEVLE: no such option; did you mean CTX_LOG_LEVEL?',
    ])
  })

  test('with REDIS=1 servers start again on their ports, sessions outlive that, and no process is left', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'run-'))
    folders.push(folder)
    const file = join(folder, 'config.yaml')
    // It serves as the secret, too.
    await writeFile(file, `tenant: { secretFile: ${file} }`)
    const { child, url } = await run({ REDIS: '1', CTX_CONFIG_FILE: file })
    const id = await session(url)
    await eventually(async () => (await turn(url, id)).startsWith('hit'))

    for (const name of ['pod-b', 'envoy', 'redis', 'gateway'] as const) {
      kill(child, name)
      const news = `${name} ended by SIGKILL, restarting`
      await eventually(() => child.output().includes(news) && childrenOf(child.pid).length === 5)
      await eventually(async () => (await turn(url, id)).startsWith('hit'))
    }

    const pids = childrenOf(child.pid)
    expect(await child.stop({ graceMs: 30_000 })).toEqual({ code: 0, signal: undefined })
    expect(child.output().at(-1)).toBe('stopping')
    await eventually(() => !pids.some(isAlive))
  })
})
