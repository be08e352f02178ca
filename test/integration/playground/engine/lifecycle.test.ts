// How an engine process begins and ends.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, jest, test } from '@jest/globals'
import { engineEntry, prepareEngine } from './support/engine-build.ts'
import { createEngineClient, textOf } from './support/engine-client.ts'
import { createEngineProcesses } from './support/engine-process.ts'

const smallArgs = ['--context-tokens', '1024', '--slots', '1']

jest.setTimeout(120_000)

describe('an engine process', () => {
  const processes = createEngineProcesses()
  afterAll(() => processes.stopAll())

  test('says on one line where it serves and what', async () => {
    const engine = await processes.start([...smallArgs, '--name', 'pod-1'])
    expect(engine).toMatchObject({
      ready: true,
      name: 'pod-1',
      pid: expect.any(Number),
      host: '127.0.0.1',
      port: expect.any(Number),
      model: 'tiny-random',
      slots: 1,
      contextTokens: 1024,
      noise: true,
    })
    expect(engine.log()).toContain('the text is noise')
  })

  test('answers 503 while it loads', async () => {
    const port = await freePort()
    const starting = processes.start([...smallArgs, '--port', String(port)])
    const seen: { status: number; body: string }[] = []
    while (seen.at(-1)?.status !== 200) {
      const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
      if (response !== undefined) seen.push({ status: response.status, body: await response.text() })
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await starting
    expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([503, 200]))
    expect(seen[0]?.body).toContain('Loading model')
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('ends well on %s', async (signal) => {
    const engine = await processes.start(smallArgs)
    expect(await engine.stop(signal)).toBe(0)
  })

  test('finishes a short answer before it ends', async () => {
    const engine = await processes.start(smallArgs)
    const client = createEngineClient(engine.url)
    const answer = client.complete(textOf(50, 1), { max_tokens: 50 })
    await client.slotsUntil((slots) => slots[0]?.is_processing === true)
    const [code, { completionTokens }] = await Promise.all([engine.stop(), answer])
    expect([code, completionTokens]).toEqual([0, 50])
  })

  test('cuts what is under way on a second signal', async () => {
    const engine = await processes.start(['--context-tokens', '8192', '--slots', '1'])
    const client = createEngineClient(engine.url)
    const response = await client.post('/v1/completions', {
      model: 'tiny-random',
      prompt: 'a',
      max_tokens: 8000,
      stream: true,
    })
    const text = response.text()
    void engine.stop()
    // Two signals at once may arrive as one.
    while (!engine.log().includes('"stopping"')) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await engine.stop()).toBe(0)
    expect(await text).toContain('shutting down')
  })

  test('ends when its parent is killed', async () => {
    await prepareEngine()
    const script = `
      const { spawn } = require('node:child_process')
      const args = [${JSON.stringify(engineEntry)}, '--exit-with-parent', '--context-tokens', '512', '--slots', '1', '--log-level', 'silent']
      spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]()
    const { pid } = JSON.parse((await lines.next()).value ?? '{}')
    expect(isRunning(pid)).toBe(true)
    parent.kill('SIGKILL')
    // The engine holds the other end of this pipe: it closes with the engine.
    expect(await lines.next()).toMatchObject({ done: true })
  })

  test('explains itself', async () => {
    const { code, stdout } = await processes.runToEnd(['--help'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('--kv-dir DIR')])
  })

  test('refuses a wrong command line', async () => {
    expect(await processes.runToEnd(['--slots', 'many'])).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining("--slots must be a whole number from 1 to 256, not 'many'"),
    })
  })

  test('ends with a reason when it cannot load its model', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'engine-lifecycle-'))
    const { code, stderr } = await processes.runToEnd(['--model', join(folder, 'missing.gguf')])
    await rm(folder, { recursive: true })
    expect([code, stderr]).toEqual([1, expect.stringContaining('missing.gguf')])
  })
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
