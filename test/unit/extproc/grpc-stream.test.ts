import { Duplex } from 'node:stream'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import {
  type GrpcStream,
  type ServedStream,
  type StreamHandler,
  serveStream,
} from '../../../src/extproc/grpc-stream.ts'

/** The part of grpc-js's call that is used: an object stream whose peer takes messages only when it is let. */
class PeerStream extends Duplex {
  readonly #taken: unknown[] = []
  #release: (() => void)[] = []
  #takes = false

  constructor() {
    super({ objectMode: true, highWaterMark: 2 })
  }

  override _read(): void {}

  override _write(message: unknown, _encoding: string, callback: () => void): void {
    this.#taken.push(message)
    if (this.#takes) callback()
    else this.#release.push(callback)
  }

  get taken(): readonly unknown[] {
    return this.#taken
  }

  takeAll(): void {
    this.#takes = true
    for (const callback of this.#release.splice(0)) callback()
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const serve = (
  open: (call: GrpcStream<unknown>) => Partial<StreamHandler<unknown>>,
): ServedStream & { stream: PeerStream; faults: unknown[]; closed: () => number } => {
  const stream = new PeerStream()
  const faults: unknown[] = []
  let closed = 0
  const served = serveStream(
    stream as unknown as ServerDuplexStream<unknown, unknown>,
    {
      path: '/test',
      longLived: true,
      decode: (bytes) => bytes,
      encode: () => Buffer.alloc(0),
      open: (call) => ({ message: () => {}, halfClosed: () => {}, closed: () => {}, ...open(call) }),
    },
    {
      closed: () => {
        closed++
      },
      fault: (error) => faults.push(error),
    },
  )
  return { ...served, stream, faults, closed: () => closed }
}

test('a stream reads no more while its peer does not read replies', async () => {
  const received: unknown[] = []
  const { stream } = serve((call) => ({
    message: (message) => {
      received.push(message)
      call.send(message)
    },
  }))
  for (let message = 1; message <= 50; message++) stream.push(message)
  await settled()
  const whileBlocked = received.length
  expect(whileBlocked).toBeLessThan(5)
  stream.takeAll()
  for (let turn = 0; turn < 100 && received.length < 50; turn++) await settled()
  expect(received).toHaveLength(50)
  expect(stream.taken).toHaveLength(50)
  stream.destroy()
})

describe('a method that throws', () => {
  test.each(['message', 'halfClosed'] as const)('in %s ends its own call with an error', async (where) => {
    const boom = new Error('boom')
    const { stream, faults } = serve(() => ({
      [where]: () => {
        throw boom
      },
    }))
    const errors: unknown[] = []
    stream.on('error', (error) => errors.push(error))
    if (where === 'message') stream.push('x')
    else stream.push(null)
    await settled()
    expect(faults).toEqual([boom])
    expect(errors).toMatchObject([{ code: 13, details: 'the server failed' }])
    stream.destroy()
  })

  test('in closed is reported', async () => {
    const boom = new Error('boom')
    const { stream, faults, closed } = serve(() => ({
      closed: () => {
        throw boom
      },
    }))
    stream.destroy()
    await settled()
    expect(faults).toEqual([boom])
    expect(closed()).toBe(1)
  })
})

test('nothing is sent to a closed call', async () => {
  const calls: GrpcStream<unknown>[] = []
  const { stream, end, closed } = serve((call) => {
    calls.push(call)
    return {}
  })
  stream.destroy()
  await settled()
  calls[0]?.send('late')
  calls[0]?.end({ code: 'internal', message: 'late' })
  end({ code: 'ok' })
  await settled()
  expect(stream.taken).toEqual([])
  expect(closed()).toBe(1)
})

test('nothing is sent after the end', async () => {
  const calls: GrpcStream<unknown>[] = []
  const { stream } = serve((call) => {
    calls.push(call)
    return {}
  })
  stream.takeAll()
  calls[0]?.send('a')
  calls[0]?.end({ code: 'ok' })
  calls[0]?.send('b')
  calls[0]?.end({ code: 'internal', message: 'late' })
  await settled()
  expect(stream.taken).toEqual(['a'])
  stream.destroy()
})
