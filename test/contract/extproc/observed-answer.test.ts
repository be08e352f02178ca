import { once } from 'node:events'
import { status } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import type { ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'
import { paths, requestBody, requestHeaders, useFixture } from './extproc-fixture.ts'

const { start } = useFixture()

const header = (name: string, value: string): Buffer => field(1, field(1, name), field(3, value))
/** Both bodies cross. */
const bothBodies = field(11, int(1, 2), int(2, 1))
const responseHeaders = field(3, field(1, header(':status', '200'), header('content-type', 'text/plain')))
const piece = (bytes: Buffer, endOfStream: boolean): Buffer => field(5, field(1, bytes), int(2, Number(endOfStream)))

/** A stream whose response is observed; the observer answers each chunk with `wish`. */
const observe = async (wish: 'more' | 'enough') => {
  const seen: { head?: readonly unknown[]; chunks: Buffer[]; how?: string } = { chunks: [] }
  const ended = new EventTarget()
  const end = once(ended, 'end')
  const observer: ResponseObserver = {
    setHeaders: { 'x-response-cache': 'miss' },
    head: (code, lookUp) => {
      seen.head = [code, lookUp('content-type')]
      return 'more'
    },
    chunk: (bytes) => {
      seen.chunks.push(Buffer.from(bytes))
      return wish
    },
    end: (how) => {
      seen.how = how
      ended.dispatchEvent(new Event('end'))
    },
  }
  const { client } = await start({
    onHeaders: async () => ({
      kind: 'need-body',
      decide: async () => ({ kind: 'passthrough', destinations: [], observer }),
    }),
  })
  const call = client.call(paths.process)
  call.stream.write(requestHeaders(bothBodies))
  call.stream.write(requestBody('{}'))
  await call.messages(2)
  call.stream.write(responseHeaders)
  return { call, seen, end }
}

test('an observer receives every byte of a response, and Envoy a reply to each chunk', async () => {
  const { call, seen, end } = await observe('more')
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
  expect(seen.head).toEqual([200, ['text/plain']])
  expect(Buffer.concat(seen.chunks).equals(Buffer.concat([Buffer.from('ab'), large]))).toBe(true)
  expect(seen.how).toBe('complete')
})

test('an observer that has enough ends the stream with OK', async () => {
  const { call, seen } = await observe('enough')
  call.stream.write(piece(Buffer.from('ab'), false))
  await expect(call.status).resolves.toMatchObject({ code: status.OK })
  expect(seen.how).toBe('broken')
})

test('a stream that breaks off ends the observation as broken', async () => {
  const { call, seen, end } = await observe('more')
  call.stream.write(piece(Buffer.from('ab'), false))
  await call.messages(4)
  call.stream.cancel()
  await end
  expect(seen.how).toBe('broken')
})
