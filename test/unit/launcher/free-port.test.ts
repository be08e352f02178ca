import { createServer } from 'node:net'
import { expect, test } from '@jest/globals'
import { freePort, freePorts } from '../../../src/launcher/free-port.ts'

/** Listens on each port, all at once. */
const listenOnAll = async (ports: readonly number[]): Promise<void> => {
  const servers = await Promise.all(
    ports.map(
      (port) =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const server = createServer()
          server.once('error', reject)
          server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server))
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
}

const ranges = [
  { range: 'as the system has them', outgoing: undefined },
  { range: 'from the middle on', outgoing: [32_768, 60_999] },
  { range: 'the upper end', outgoing: [49_152, 65_535] },
  { range: 'the lower half', outgoing: [1024, 32_767] },
  { range: 'all there are', outgoing: [1024, 65_535] },
] as const

test.each(ranges)('ports are different and free, with outgoing connections on $range', async ({ outgoing }) => {
  const ports = await freePorts(20, outgoing)

  expect(new Set(ports).size).toBe(20)
  await listenOnAll(ports)
})

test.each([
  { range: 'from the middle on', outgoing: [32_768, 60_999] },
  { range: 'the upper end', outgoing: [49_152, 65_535] },
  { range: 'the lower half', outgoing: [1024, 32_767] },
] as const)('no port is one that an outgoing connection may get: $range', async ({ outgoing }) => {
  const [first, last] = outgoing
  const ports = await freePorts(50, outgoing)

  expect(ports.filter((port) => port >= first && port <= last)).toEqual([])
  expect(ports.filter((port) => port < 1024 || port > 65_535)).toEqual([])
})

test('one port', async () => {
  await listenOnAll([await freePort()])
})
