import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { freePort } from '../../../../playground/free-port.ts'
import { type FleetServer, serveFleetControl, startFleetServer } from '../../../../playground/vllm/fleet-server.ts'
import { answers, httpGet, NotReadyError, prints } from '../../../../playground/wait-until-ready.ts'
import { eventually } from '../../../support/eventually.ts'
import { useFolder } from '../../../support/use-folder.ts'

const folder = useFolder()

/** Answers every GET with its process id. */
const program = (port: number): string =>
  `console.log('listening'); require('http').createServer((q, r) => r.end(String(process.pid))).listen(${port}, '127.0.0.1')`

describe('a server of a fleet', () => {
  let port = 0
  let server: FleetServer
  let endControl: () => Promise<void>
  let reports: string[] = []

  const options = (script: string) => ({
    name: 'coordinator',
    url: `http://127.0.0.1:${port}`,
    command: [process.execPath, '-e', script] as const,
    env: { PATH: process.env['PATH'] },
    cwd: folder(),
    logFile: join(folder(), 'coordinator.log'),
    ready: answers(`http://127.0.0.1:${port}/`),
    report: (line: string) => void reports.push(line),
  })
  const answered = async (): Promise<unknown> => httpGet(`http://127.0.0.1:${port}/`)
  const send = (path: string, method = 'POST'): Promise<{ readonly status: number; readonly body: string }> =>
    new Promise((resolve, reject) => {
      request({ socketPath: join(folder(), 'control'), path, method, agent: false }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      })
        .on('error', reject)
        .end()
    })

  beforeEach(async () => {
    reports = []
    port = await freePort()
    server = await startFleetServer(options(program(port)))
    endControl = await serveFleetControl(join(folder(), 'control'), [server])
  })
  afterEach(async () => {
    await endControl()
    await server.stop()
  })

  test('is reported when it is up, and writes what it prints into its log', async () => {
    expect(reports).toEqual([expect.stringMatching(/^coordinator is up on http:\/\/127\.0\.0\.1:\d+ \(\d+ s\)$/)])
    await server.stop()
    expect(await readFile(join(folder(), 'coordinator.log'), 'utf8')).toBe('listening\n')
    expect(reports).toHaveLength(1)
  })

  test('its end is reported when nobody asked for it, and the control socket can start it anew', async () => {
    expect(await send('/coordinator/kill')).toEqual({ status: 204, body: '' })
    await eventually(() => reports.length === 2)
    expect(reports[1]).toContain('coordinator ended by SIGKILL')
    expect(await send('/coordinator/restart')).toMatchObject({ status: 204 })
    expect(await answered()).toMatchObject({ status: 200, body: String(server.child().pid) })
  })

  test.each([
    { name: 'another server', path: '/vllm-9/kill', method: 'POST' },
    { name: 'another command', path: '/coordinator/burn', method: 'POST' },
    { name: 'a command by GET', path: '/coordinator/kill', method: 'GET' },
  ])('$name is not known', async ({ path, method }) => {
    expect(await send(path, method)).toMatchObject({ status: 404 })
    expect(server.child().isRunning()).toBe(true)
  })

  test('one that ends before it answers fails with what it printed', async () => {
    const start = startFleetServer({
      ...options(`console.error('no memory'); process.exit(3)`),
      ready: prints(/never/),
    })
    await expect(start).rejects.toThrow(NotReadyError)
    await expect(start).rejects.toThrow('no memory')
  })
})
