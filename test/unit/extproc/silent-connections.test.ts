import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { createSilentConnections, type SilenceLimits } from '../../../src/extproc/silent-connections.ts'
import { eventually } from '../../support/eventually.ts'
import { listenLocally } from '../../support/local-server.ts'

let server: Server
let port: number
const sockets: Socket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server.close()
})

/** A server that sends back what silent connections say at last. */
const start = async (limits: SilenceLimits) => {
  const silent = createSilentConnections(limits)
  server = createServer((socket) => {
    sockets.push(socket)
    silent.hold(socket, (speaking) => void speaking.pipe(speaking))
  })
  port = await listenLocally(server)
  return silent
}

const open = async (): Promise<Socket> => {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
  return socket
}

const answerTo = async (socket: Socket, text: string): Promise<string> => {
  const answered = once(socket, 'data')
  socket.write(text)
  return String(await answered)
}

test('a connection that speaks is handed over with its first bytes, and is not closed any more', async () => {
  await start({ limitMs: 60_000, maxSilent: 1 })
  const first = await open()
  expect(await answerTo(first, 'one')).toBe('one')
  const second = await open()
  expect(await answerTo(second, 'two')).toBe('two')
  expect(await answerTo(first, 'three')).toBe('three')
})

test('one that says nothing in time is closed', async () => {
  await start({ limitMs: 20, maxSilent: 10 })
  await once((await open()).resume(), 'close')
})

test('above the limit those are closed that have been silent for the longest time', async () => {
  await start({ limitMs: 60_000, maxSilent: 2 })
  const opened: Socket[] = []
  const closed: Socket[] = []
  for (let count = 0; count < 4; count += 1) {
    const socket = await open()
    socket.resume().once('close', () => closed.push(socket))
    opened.push(socket)
  }
  await eventually(() => closed.length === 2)
  expect(closed).toEqual(opened.slice(0, 2))
})

test('one whose client leaves without a word is forgotten, and all can be closed', async () => {
  const silent = await start({ limitMs: 60_000, maxSilent: 10 })
  const leaving = await open()
  leaving.resume().end()
  await once(leaving, 'close')
  const staying = await open()
  await eventually(() => sockets.length === 4)
  const closed = once(staying.resume(), 'close')
  silent.closeAll()
  await closed
})
