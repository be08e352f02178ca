import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { freePort } from '../../../../playground/free-port.ts'
import type { FleetDescription } from '../../../../playground/vllm/fleet-description.ts'
import { obtainVllmFleet } from '../../../../playground/vllm/obtain-vllm-fleet.ts'
import { readyText, runVllmFleet } from '../../../../playground/vllm/run-vllm-fleet.ts'

const pod = (number: number): FleetDescription['pods'][number] => ({
  address: `127.0.0.1:810${number + 1}`,
  url: `http://127.0.0.1:810${number + 1}`,
  lmcacheInstance: `pod-${number}`,
  lmcacheUrl: `http://127.0.0.1:910${number + 1}`,
  kvEvents: { endpoint: `ipc:///tmp/x/events-${number}`, replayEndpoint: `ipc:///tmp/x/replay-${number}` },
})
const description: FleetDescription = {
  pid: process.pid,
  pods: [pod(0), pod(1)],
  coordinatorUrl: 'http://127.0.0.1:9200',
  l2Directory: '/run/l2',
  modelPath: 'models/small',
  servedModelName: 'small-random',
  chunkTokens: 128,
  maxModelTokens: 8192,
  controlSocket: '/tmp/x/control',
  logFolder: '/run/logs',
}

test('the ready text has the whole line that starts the gateway', () => {
  const text = readyText(description, '/run/fleet.json')
  expect(text.split('\n')[0]).toMatch(/^ready {2}pods 127\.0\.0\.1:8101, 127\.0\.0\.1:8102 {2}model small-random/)
  expect(text).toContain(
    '  PODS=127.0.0.1:8101,127.0.0.1:8102 CONNECTOR=lmcache LMCACHE_URL=http://127.0.0.1:9200 LMCACHE_INSTANCES=127.0.0.1:8101=pod-0,127.0.0.1:8102=pod-1 make run\n',
  )
  expect(text).toContain('  VLLM_FLEET=/run/fleet.json make test-vllm')
})

describe('runVllmFleet refuses before anything is made', () => {
  let server: Server
  let port = 0
  beforeEach(async () => {
    port = await freePort()
    server = createServer()
    await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port }, resolve))
  })
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve))
  })

  const refusal = async (env: Record<string, string>): Promise<{ readonly code: number; readonly said: string }> => {
    let said = ''
    const code = await runVllmFleet({
      env,
      print: () => 0,
      fail: (line) => {
        said = line
        return 1
      },
      untilStopped: () => new Promise(() => undefined),
    })
    return { code, said }
  }

  test('a port in use', async () => {
    const { code, said } = await refusal({ FLEET_COORDINATOR_PORT: String(port) })
    expect(code).toBe(1)
    expect(said).toMatch(/^Port \d+ is in use\. Choose others: FLEET_POD_PORTS=/)
  })

  test('ports that make no sense', async () => {
    expect(await refusal({ FLEET_POD_PORTS: 'x' })).toEqual({
      code: 1,
      said: 'FLEET_POD_PORTS must look like 8101,8102.',
    })
  })
})

describe('obtainVllmFleet with VLLM_FLEET', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fleet-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const written = async (content: unknown): Promise<string> => {
    const file = join(folder, 'fleet.json')
    await writeFile(file, JSON.stringify(content))
    return file
  }
  const obtain = (file: string) => obtainVllmFleet({ env: { VLLM_FLEET: file }, onLine: () => undefined })

  test('gives the fleet that runs', async () => {
    const fleet = await obtain(await written(description))
    expect(fleet.description).toEqual(description)
    await expect(fleet.release()).resolves.toBeUndefined()
  })

  test.each([
    { name: 'a file that is not there', content: undefined },
    { name: 'something else', content: { pods: [] } },
  ])('$name is an error', async ({ content }) => {
    const file = content === undefined ? join(folder, 'none') : await written(content)
    await expect(obtain(file)).rejects.toThrow()
  })
})
