import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from '@jest/globals'
import { freePorts } from '../../../playground/free-port.ts'

/** Listens on each port, all at once. */
const listenOnAll = async (ports: readonly number[]): Promise<void> => {
  const servers = ports.map((port) => createServer().listen({ host: '127.0.0.1', port, exclusive: true }))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
}

const rangesWithRoom = [
  { range: 'from the middle on', outgoing: [32_768, 60_999] },
  { range: 'the upper end', outgoing: [49_152, 65_535] },
  { range: 'the lower half', outgoing: [1024, 32_767] },
] as const
const ranges = [
  { range: 'as the system has them', outgoing: undefined },
  ...rangesWithRoom,
  { range: 'all there are', outgoing: [1024, 65_535] },
] as const

test.each(ranges)('ports are different and free, with outgoing connections on $range', async ({ outgoing }) => {
  const ports = await freePorts(20, outgoing)

  expect(new Set(ports).size).toBe(20)
  await listenOnAll(ports)
})

test.each(rangesWithRoom)('no port is one that an outgoing connection may get: $range', async ({ outgoing }) => {
  const [first, last] = outgoing
  const ports = await freePorts(50, outgoing)

  expect(ports.filter((port) => port >= first && port <= last)).toEqual([])
  expect(ports.filter((port) => port < 1024 || port > 65_535)).toEqual([])
})

test('a port is given out once, although nothing listens there yet', async () => {
  // Fewer than 600 ports are left to choose from.
  const ports = await freePorts(300, [11_090, 65_535])
  expect(new Set(ports).size).toBe(300)
})
