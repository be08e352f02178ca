import { once } from 'node:events'
import { status } from '@grpc/grpc-js'
import { afterEach, expect, test } from '@jest/globals'
import type { ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import { createHealthState } from '../../../src/extproc/health.ts'
import { createExtProcServer } from '../../../src/extproc/server.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'
import { createRawClient } from './raw-client.ts'

const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const header = (name: string, value: string): Buffer => field(1, field(1, name), field(3, value))
const requestHeaders = Buffer.concat([field(2, field(1, header(':path', '/'))), field(11, int(1, 2), int(2, 1))])
const responseHeaders = field(3, field(1, header(':status', '200'), header('content-type', 'text/plain')))
const piece = (bytes: Buffer, endOfStream: boolean): Buffer => field(5, field(1, bytes), int(2, Number(endOfStream)))

/** A request that goes on, and whose answer somebody wants to be told of. */
const observe = async (wish: 'more' | 'enough') => {
  const told: { head?: readonly unknown[]; chunks: Buffer[]; how?: string } = { chunks: [] }
  const ended = new EventTarget()
  const end = once(ended, 'end')
  const observer: ResponseObserver = {
    setHeaders: { 'x-response-cache': 'miss' },
    head: (code, lookUp) => {
      told.head = [code, lookUp('content-type')]
      return 'more'
    },
    chunk: (bytes) => {
      told.chunks.push(Buffer.from(bytes))
      return wish
    },
    end: (how) => {
      told.how = how
      ended.dispatchEvent(new Event('end'))
    },
  }
  const server = createExtProcServer({
    service: {
      onHeaders: async () => ({
        kind: 'need-body',
        decide: async () => ({ kind: 'passthrough', destinations: [], observer }),
      }),
      endTurn: async () => {},
      clientDisconnected: async () => {},
    },
    listen: { host: '127.0.0.1', port: 0 },
    maxBodyBytes: 100_000,
    health: createHealthState(),
    hooks: {
      streamOpened: () => {},
      streamClosed: () => {},
      message: () => {},
      fault: () => {},
      entryMalformed: () => {},
    },
  })
  cleanups.push(() => server.stop())
  const client = createRawClient(await server.start())
  cleanups.push(() => client.close())
  const call = client.call(path)
  call.stream.write(requestHeaders)
  call.stream.write(field(4, field(1, '{}'), int(2, 1)))
  await call.messages(2)
  call.stream.write(responseHeaders)
  return { call, told, end }
}

test('an answer is told to the byte, and each piece of it goes on', async () => {
  const { call, told, end } = await observe('more')
  const large = Buffer.alloc(70_000, 'x')

  call.stream.write(piece(Buffer.from('ab'), false))
  call.stream.write(piece(large, false))
  call.stream.write(piece(Buffer.alloc(0), true))

  const replies = await call.messages(6)
  const set = field(1, field(1, field(1, 'x-response-cache'), field(3, 'miss')), int(3, 2))
  expect(replies.map((reply) => reply.toString('hex'))).toEqual(
    [
      field(1, field(1)),
      field(3, field(1)),
      field(2, field(1, field(2, set))),
      ...Array.from({ length: 3 }, () => field(4, field(1))),
    ].map((reply) => reply.toString('hex')),
  )
  await end
  expect(told.head).toEqual([200, ['text/plain']])
  expect(Buffer.concat(told.chunks).equals(Buffer.concat([Buffer.from('ab'), large]))).toBe(true)
  expect(told.how).toBe('complete')
})

test('the stream ends well once enough was told', async () => {
  const { call, told } = await observe('enough')
  call.stream.write(piece(Buffer.from('ab'), false))
  await expect(call.status).resolves.toMatchObject({ code: status.OK })
  expect(told.how).toBe('broken')
})

test('a stream that breaks off ends the answer', async () => {
  const { call, told, end } = await observe('more')
  call.stream.write(piece(Buffer.from('ab'), false))
  await call.messages(4)
  call.stream.cancel()
  await end
  expect(told.how).toBe('broken')
})
