import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { type ManagedChild, startChild } from '../../../../playground/launcher/child-process.ts'
import { freePort } from '../../../../playground/launcher/free-port.ts'
import { packageRoot } from '../../../../playground/launcher/tools-dir.ts'
import { waitUntilReady } from '../../../../playground/launcher/wait-until-ready.ts'
import { isAlive, until } from './support.ts'

const running: ManagedChild[] = []
const folders: string[] = []

/** `context-cache-gateway run`, as far as the line that says it is ready. */
const run = async (): Promise<{ readonly child: ManagedChild; readonly url: string }> => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'run-'))
  folders.push(folder)
  const child = await startChild({
    name: 'run',
    command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'run'],
    env: { ...process.env, GATEWAY_PORT: String(port), KV_DIR: folder },
  })
  running.push(child)
  await waitUntilReady(child, { kind: 'line', pattern: /^ready {2}http/ }, { timeoutMs: 120_000 })
  return { child, url: `http://127.0.0.1:${port}` }
}

/** Two pods, the gateway and Envoy, as the kernel knows them. */
const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)

afterEach(async () => {
  await Promise.all(running.splice(0).map((child) => child.stop({ graceMs: 30_000 })))
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
})

describe('context-cache-gateway run', () => {
  test('answers from its line "ready" on, as it says there', async () => {
    const { child, url } = await run()
    const headers = { authorization: 'Bearer test-key-1234567890', 'content-type': 'application/json' }
    const send = (path: string, more: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: JSON.stringify({ model: 'tiny-random', prompt: 'Say this is a test', max_tokens: 5 }),
      })

    const created = await send('/v1/context', { 'x-session-ttl': '3600' })
    const id = created.headers.get('x-session-id') ?? ''
    const turn = await send('/v1/completions', { 'x-session-id': id })
    const deleted = await fetch(`${url}/v1/context/${id}`, { method: 'DELETE', headers })

    expect({ created: created.status, turn: turn.status, deleted: deleted.status }).toEqual({
      created: 200,
      turn: 200,
      deleted: 200,
    })
    expect(turn.headers.get('x-session-id')).toBe(id)
    expect(child.output().join('\n')).toContain('Ctrl-C ends everything')
  }, 180_000)

  test('leaves nothing behind', async () => {
    const { child } = await run()
    const servers = childrenOf(child.pid)

    const exit = await child.stop({ graceMs: 30_000 })

    expect(exit).toEqual({ code: 0, signal: undefined })
    expect(servers.length).toBeGreaterThanOrEqual(4)
    await until(() => !servers.some(isAlive))
  }, 180_000)
})
