import { status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import { parseEntry } from '../../../src/accesslog/parse-entry.ts'
import { answered, batchOf, entryOf } from '../../unit/accesslog/log-entries.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'
import { paths, useFixture } from './extproc-fixture.ts'
import type { RawClient } from './raw-client.ts'

const { start } = useFixture()

describe('access log', () => {
  const usage = '{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}'
  const turn = (ticket: string): string => entryOf({ ...answered, ticket, usage })

  test('the service receives turns and disconnects, and malformed entries are counted', async () => {
    const { client, log, turns } = await start()
    const call = client.call(paths.accessLogs)
    call.stream.end(batchOf(turn('t1'), turn('-'), 't3', '', turn('t2'), entryOf({ flags: 'DC', requestKey: 'k1' })))
    await log.noted('turn', 2)
    await log.noted('disconnected k1')
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    expect(call.received).toEqual([Buffer.alloc(0)])
    expect(turns.map(({ ticket }) => ticket)).toEqual(['t1', 't2'])
    expect(parseEntry(turn('t1'))).toEqual({ kind: 'turn', turn: turns[0] })
    expect(log.events.filter((event) => event === 'malformed')).toHaveLength(1)
  })

  test.each([
    { name: 'rejects', endTurn: () => Promise.reject(new Error('boom')) },
    {
      name: 'throws',
      endTurn: () => {
        throw new Error('boom')
      },
    },
  ])('a service that $name loses only that turn', async ({ endTurn }) => {
    const { client, log } = await start({ endTurn })
    const call = client.call(paths.accessLogs)
    call.stream.end(batchOf(turn('t1'), turn('t2')))
    await log.noted('fault', 2)
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })
})

describe('health', () => {
  const serving = int(1, 1)
  const notServing = int(1, 2)
  const serviceUnknown = int(1, 3)

  const check = async (client: RawClient, service: string): Promise<Buffer | undefined> => {
    const call = client.call(paths.check)
    call.stream.end(field(1, service))
    const [answer] = await call.messages(1)
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    return answer
  }

  test.each([
    { service: '', state: 'not serving', before: notServing },
    { service: 'readiness', state: 'not serving', before: notServing },
    { service: 'envoy.service.ext_proc.v3.ExternalProcessor', state: 'not serving', before: notServing },
    { service: 'liveness', state: 'serving', before: serving },
  ])('service "$service" is $state before the gateway serves, and serving then', async ({ service, before }) => {
    const { client, health } = await start()
    await expect(check(client, service)).resolves.toEqual(before)
    health.setServing(true)
    await expect(check(client, service)).resolves.toEqual(serving)
  })

  test.each([
    { name: 'an unknown service', requests: [field(1, 'nobody')], code: status.NOT_FOUND },
    { name: 'no request', requests: [], code: status.UNIMPLEMENTED },
    { name: 'two requests', requests: [field(1), field(1)], code: status.UNIMPLEMENTED },
  ])('a check with $name is refused', async ({ requests, code }) => {
    const { client } = await start()
    const call = client.call(paths.check)
    for (const request of requests) call.stream.write(request)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code })
  })

  test('a watch receives every change, and ends with the drain', async () => {
    const { client, server, health } = await start()
    const call = client.call(paths.watch)
    call.stream.end(field(1, 'readiness'))
    await call.messages(1)
    health.setServing(true)
    health.setServing(true)
    await call.messages(2)
    await server.drain(60_000)
    await expect(call.status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    expect(call.received).toEqual([notServing, serving, notServing])
  })

  test('a watch on an unknown service stays open', async () => {
    const { client, health } = await start()
    const call = client.call(paths.watch)
    call.stream.end(field(1, 'nobody'))
    await call.messages(1)
    health.setServing(true)
    await expect(check(client, 'readiness')).resolves.toEqual(serving)
    expect(call.received).toEqual([serviceUnknown])
  })
})
