import { status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { paths, useFixture } from './extproc-fixture.ts'

const { start } = useFixture()

const turn = (id: number): Buffer => Buffer.from([0x0a, 8, 0x08, id, 0x12, 4, 0, 0, 0, 0])

/** Ids of the decisions in these messages. Ids and decisions are short. */
const idsOf = (messages: readonly Buffer[]): readonly number[] => {
  const bytes = Buffer.concat(messages)
  const ids: number[] = []
  for (let at = 0; at < bytes.length; at += 2) {
    if (bytes[at] !== 0x0a) continue
    ids.push(bytes[at + 3] ?? 0)
    at += bytes[at + 1] ?? 0
  }
  return ids
}

describe('turns of the accelerator', () => {
  test('100 turns share a stream, and each gets its own decision', async () => {
    const { client, log } = await start()
    const call = client.call(paths.turns)
    for (let id = 1; id <= 100; id++) call.stream.write(turn(id))
    await eventually(() => idsOf(call.received).length >= 100)
    expect(new Set(idsOf(call.received)).size).toBe(100)
    expect(Buffer.concat(call.received).toString()).toContain('10.0.0.1:8000')
    expect(log.events.filter((event) => event === 'closed')).toHaveLength(100)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })

  test('garbage ends the stream with an error', async () => {
    const { client } = await start()
    const call = client.call(paths.turns)
    call.stream.write(Buffer.from([1]))
    await expect(call.status).resolves.toMatchObject({ code: status.INTERNAL })
  })
})
