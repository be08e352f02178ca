import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createChildren, type ManagedChild, startChild } from '../../../playground/child-process.ts'
import { packageRoot } from '../../../playground/paths.ts'
import { startServer } from '../../../playground/start-server.ts'
import { answers, NotReadyError, prints, waitUntilReady } from '../../../playground/wait-until-ready.ts'
import { eventually } from '../../support/eventually.ts'
import { closeAtOnce, listenLocally } from '../../support/local-server.ts'
import { isAlive } from './support.ts'

const children: ManagedChild[] = []

const start = async (script: string): Promise<ManagedChild> => {
  const child = await startChild({ name: 'script', command: [process.execPath, '--eval', script] })
  children.push(child)
  return child
}

const forever = 'setInterval(() => undefined, 1000);'

afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()))
})

describe('stop', () => {
  test('lets the child end by itself, and can be repeated', async () => {
    const child = await start(`process.on('SIGTERM', () => process.exit(5)); console.log('ready'); ${forever}`)
    await waitUntilReady(child, prints(/ready/))
    const exits = await Promise.all([child.stop(), child.stop()])
    expect([...exits, await child.stop(), await child.kill()]).toEqual(Array(4).fill({ code: 5, signal: undefined }))
  })

  test('kills a child that does not end', async () => {
    const child = await start(`process.on('SIGTERM', () => undefined); console.log('ready'); ${forever}`)
    await waitUntilReady(child, prints(/ready/))
    expect(await child.stop({ graceMs: 50 })).toEqual({ code: undefined, signal: 'SIGKILL' })
    expect(isAlive(child.pid)).toBe(false)
  })

  test('ends a paused child too', async () => {
    const child = await start(`console.log('ready'); ${forever}`)
    await waitUntilReady(child, prints(/ready/))
    child.pause()
    expect(await child.stop()).toEqual({ code: undefined, signal: 'SIGTERM' })
  })

  test('does not wait for a program that the child left behind', async () => {
    const script = `const left = require('node:child_process').spawn('sleep', ['20'], { stdio: 'inherit' }); console.log(left.pid); ${forever}`
    const child = await start(script)
    await waitUntilReady(child, prints(/^\d+$/))
    const left = Number(child.output()[0])
    try {
      expect(await child.stop()).toEqual({ code: undefined, signal: 'SIGTERM' })
      expect(isAlive(left)).toBe(true)
    } finally {
      process.kill(left, 'SIGKILL')
    }
  })
})

describe('waitUntilReady', () => {
  test.each([
    { name: 'a line', probe: prints(/never/), waitingFor: 'a line like /never/' },
    {
      name: 'a check',
      probe: { description: 'Godot', check: async () => false },
      waitingFor: 'Godot',
    },
  ])('fails when $name does not come in time, and leaves the child', async ({ probe, waitingFor }) => {
    const child = await start(forever)
    await expect(waitUntilReady(child, probe, { timeoutMs: 50 })).rejects.toThrow(
      `script was not ready after 50 ms, waiting for ${waitingFor}. It printed nothing.`,
    )
    expect(child.isRunning()).toBe(true)
  })

  test('a server that hangs does not hold the wait up', async () => {
    const silent = createServer(() => undefined)
    const url = `http://127.0.0.1:${await listenLocally(silent)}/`
    try {
      const child = await start(forever)
      await expect(waitUntilReady(child, answers(url), { timeoutMs: 100 })).rejects.toThrow(NotReadyError)
    } finally {
      await closeAtOnce(silent)
    }
  })

  test('startServer kills a server that is not ready in time', async () => {
    const pids: number[] = []
    const starting = startServer({
      name: 'script',
      command: [process.execPath, '--eval', forever],
      children: { ...createChildren(), add: ({ pid }) => void pids.push(pid) },
      ready: prints(/never/),
      readyTimeoutMs: 50,
    })
    await expect(starting).rejects.toThrow(NotReadyError)
    expect(pids.map(isAlive)).toEqual([false])
  })
})

describe('a child of a process that ends', () => {
  const compiled = pathToFileURL(join(packageRoot(), 'dist/playground/child-process.js')).href

  test.each([
    { name: 'by process.exit', end: 'process.exit(0)' },
    { name: 'by a fault', end: 'throw new Error("fault")' },
    { name: 'by SIGINT', end: 'process.kill(process.pid, "SIGINT")' },
    { name: 'by SIGTERM', end: 'process.kill(process.pid, "SIGTERM")' },
    { name: 'by SIGKILL', end: 'process.kill(process.pid, "SIGKILL")' },
  ])('$name ends too', async ({ end }) => {
    const script = `
      import { startChild } from '${compiled}'
      const child = await startChild({ name: 'sleep', command: ['sleep', '1000'] })
      console.log(child.pid)
      process.stdin.once('data', () => { ${end} })`
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    try {
      const [line] = await once(createInterface(parent.stdout), 'line')
      const pid = Number(line)
      expect(isAlive(pid)).toBe(true)
      parent.stdin.write('go\n')
      await once(parent, 'exit')
      await eventually(() => !isAlive(pid))
    } finally {
      parent.kill('SIGKILL')
    }
  })
})
