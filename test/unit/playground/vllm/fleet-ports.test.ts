import { createServer } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { freeFleetPorts, readFleetPorts, takenPorts } from '../../../../playground/vllm/fleet-ports.ts'

describe('readFleetPorts', () => {
  test('two pods on fixed ports unless told otherwise', async () => {
    expect(await readFleetPorts({})).toMatchObject({
      kind: 'valid',
      ports: {
        pods: [8101, 8102],
        lmcache: [9101, 9102],
        coordinator: 9200,
        lmcacheQueues: [expect.any(Number), expect.any(Number)],
      },
    })
  })

  test('as many pods as ports are named', async () => {
    const env = { FLEET_POD_PORTS: ' 8111 ', FLEET_LMCACHE_PORTS: '9111', FLEET_COORDINATOR_PORT: '9210' }
    expect(await readFleetPorts(env)).toMatchObject({
      kind: 'valid',
      ports: { pods: [8111], lmcache: [9111], coordinator: 9210 },
    })
  })

  test.each([
    {
      name: 'a word for a port',
      env: { FLEET_POD_PORTS: '8101,http' },
      message: 'FLEET_POD_PORTS must look like 8101,8102.',
    },
    {
      name: 'a port too high',
      env: { FLEET_LMCACHE_PORTS: '9101,65536' },
      message: 'FLEET_LMCACHE_PORTS must look like 9101,9102.',
    },
    {
      name: 'two coordinators',
      env: { FLEET_COORDINATOR_PORT: '9200,9201' },
      message: 'FLEET_COORDINATOR_PORT must be one port.',
    },
    {
      name: 'no port for an LMCache server',
      env: { FLEET_POD_PORTS: '1,2,3' },
      message: 'FLEET_POD_PORTS and FLEET_LMCACHE_PORTS must be equally many.',
    },
    {
      name: 'one port for two servers',
      env: { FLEET_COORDINATOR_PORT: '8101' },
      message: 'FLEET_POD_PORTS, FLEET_LMCACHE_PORTS and FLEET_COORDINATOR_PORT share a port.',
    },
  ])('$name is refused', async ({ env, message }) => {
    expect(await readFleetPorts(env)).toEqual({ kind: 'invalid', message })
  })
})

describe('takenPorts', () => {
  test('names the ports that somebody listens on', async () => {
    const ports = await freeFleetPorts(2)
    expect(new Set([...ports.pods, ...ports.lmcache, ...ports.lmcacheQueues, ports.coordinator]).size).toBe(7)
    expect(await takenPorts(ports)).toEqual([])
    const server = createServer()
    await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: ports.coordinator }, resolve))
    expect(await takenPorts(ports)).toEqual([ports.coordinator])
    await new Promise((resolve) => server.close(resolve))
  })
})
