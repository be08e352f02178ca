import { describe, expect, test } from '@jest/globals'
import { GrpcCall, type PeerStream } from '../../../../src/extproc/http2/grpc-call.ts'
import type { GrpcStatus } from '../../../../src/extproc/http2/grpc-status.ts'
import type { RpcCall, RpcReceiver } from '../../../../src/extproc/transport.ts'

interface Bench {
  readonly call: GrpcCall
  readonly written: string[]
  readonly ends: GrpcStatus[]
  readonly reading: string[]
  readonly faults: unknown[]
  readonly closed: () => number
  readonly slow: (isSlow: boolean) => void
}

const prepare = (open: (call: RpcCall<unknown>) => Partial<RpcReceiver<unknown>>): Bench => {
  const written: string[] = []
  const ends: GrpcStatus[] = []
  const reading: string[] = []
  const faults: unknown[] = []
  let closed = 0
  let isSlow = false
  const stream: PeerStream = {
    write: (message) => {
      written.push(String(message))
      return !isSlow
    },
    finish: (status) => ends.push(status),
    pause: () => reading.push('paused'),
    resume: () => reading.push('resumed'),
  }
  const call = new GrpcCall(
    stream,
    {
      path: '/test',
      longLived: true,
      decode: String,
      encode: (text) => Buffer.from(String(text)),
      open: (opened) => ({ message: () => {}, halfClosed: () => {}, closed: () => {}, ...open(opened) }),
    },
    {
      maxMessageBytes: 10,
      observer: {
        closed: () => {
          closed++
        },
        fault: (error) => faults.push(error),
      },
    },
  )
  const slow = (now: boolean): void => {
    isSlow = now
  }
  return { call, written, ends, reading, faults, closed: () => closed, slow }
}

const framed = (text: string): Buffer => Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text)])

const boom = new Error('boom')
const fail = (): never => {
  throw boom
}

describe('a method that throws', () => {
  test.each<[string, (bench: Bench) => void]>([
    ['message', ({ call }) => call.data(framed('x'))],
    ['halfClosed', ({ call }) => call.halfClosed()],
  ])('in %s ends its own call', (where, act) => {
    const bench = prepare(() => ({ [where]: fail }))
    bench.call.open(undefined)
    act(bench)
    expect(bench.faults).toEqual([boom])
    expect(bench.ends).toEqual([{ code: 13, message: 'the server failed' }])
  })

  test('in open ends its own call, to which nothing more is told', () => {
    const bench = prepare(fail)
    bench.call.open(undefined)
    bench.call.data(framed('x'))
    bench.call.halfClosed()
    bench.call.closed()
    expect(bench.faults).toEqual([boom])
    expect(bench.ends).toHaveLength(1)
    expect(bench.closed()).toBe(1)
  })

  test('in closed is reported', () => {
    const bench = prepare(() => ({ closed: fail }))
    bench.call.open(undefined)
    bench.call.closed()
    bench.call.closed()
    expect(bench.faults).toEqual([boom])
    expect(bench.closed()).toBe(1)
  })
})

test('messages behind one that ended the call are not told', () => {
  const told: unknown[] = []
  const bench = prepare((call) => ({
    message: (text) => {
      told.push(text)
      call.end({ code: 'ok' })
    },
  }))
  bench.call.open(undefined)
  bench.call.data(Buffer.concat([framed('a'), framed('b')]))
  expect(told).toEqual(['a'])
  expect(bench.ends).toEqual([{ code: 0, message: '' }])
})

test('a slow peer is not read until it has caught up', () => {
  const bench = prepare((call) => ({ message: (text) => call.send(text) }))
  bench.call.open(undefined)
  bench.slow(true)
  bench.call.data(Buffer.concat([framed('a'), framed('b')]))
  expect(bench.reading).toEqual(['paused'])
  bench.call.drained()
  bench.call.drained()
  expect(bench.reading).toEqual(['paused', 'resumed'])
  expect(bench.written).toEqual(['a', 'b'])
})

test('nothing is sent once the call has ended, or its stream is gone', () => {
  const calls: RpcCall<unknown>[] = []
  const bench = prepare((call) => {
    calls.push(call)
    return {}
  })
  bench.call.open(undefined)
  calls[0]?.send('a')
  calls[0]?.end({ code: 'internal', message: 'first' })
  calls[0]?.send('b')
  calls[0]?.end({ code: 'ok' })
  bench.call.closed()
  calls[0]?.send('c')
  expect(bench.written).toEqual(['a'])
  expect(bench.ends).toEqual([{ code: 13, message: 'first' }])
})

test('an answer above the limit ends the call', () => {
  const bench = prepare((call) => ({ message: () => call.send('x'.repeat(11)) }))
  bench.call.open(undefined)
  bench.call.data(framed('a'))
  expect(bench.written).toEqual([])
  expect(bench.ends).toMatchObject([{ code: 8 }])
})
