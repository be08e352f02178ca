import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
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
const begin = async (): Promise<{ readonly child: ManagedChild; readonly url: string }> => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'run-'))
  folders.push(folder)
  const child = await startChild({
    name: 'run',
    command: [process.execPath, join(packageRoot(), 'dist/src/main.js'), 'run'],
    env: { ...process.env, GATEWAY_PORT: String(port), KV_DIR: folder },
  })
  running.push(child)
  return { child, url: `http://127.0.0.1:${port}` }
}

/** Waits for the line that says it is ready. */
const run: typeof begin = async () => {
  const started = await begin()
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

describe('context-cache-gateway run', () => {
  test('serves from its line "ready" on, and leaves no process behind', async () => {
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

    const servers = childrenOf(child.pid)

    const exit = await child.stop({ graceMs: 30_000 })

    expect(exit).toEqual({ code: 0, signal: undefined })
    expect(servers.length).toBeGreaterThanOrEqual(4)
    await eventually(() => !servers.some(isAlive))
  })

  test('SIGTERM during the start ends it, and nothing is started afterwards', async () => {
    const { child } = await begin()
    await waitUntilReady(child, prints(/^starting two pods/))
    const exit = await child.stop({ graceMs: 30_000 })
    expect(exit).toEqual({ code: 0, signal: undefined })
    expect(child.output().filter((line) => /^(ready|starting the gateway)/.test(line))).toEqual([])
  })

  test('a child that ends is reported by its name, its signal and its last lines', async () => {
    const { child } = await run()
    const gateway = childrenOf(child.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('serve'))
    process.kill(gateway ?? 0, 'SIGKILL')
    expect((await child.exited).code).toBe(1)
    expect(child.output().join('\n')).toMatch(/gateway was ended by SIGKILL\. It printed (last:|nothing)/)
  })
})
