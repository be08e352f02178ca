import { describe, expect, test } from '@jest/globals'
import { retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { encodeReply, goOn, ticksToWait, told, useFilter } from './filter-bench.ts'

const { start, waiting } = useFilter()

describe('streams', () => {
  test('are four, asked in turn', () => {
    const envoy = start()
    for (let time = 0; time < 12; time++) envoy.request({})
    expect([...envoy.streams.values()].map(({ sent }) => sent.length)).toEqual([3, 3, 3, 3])
  })

  test('are replaced after thirty seconds, and closed when all is said on them', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, encodeReply(id, { kind: 'extend', milliseconds: 30_000 }))
    envoy.tick(290)
    const late = [0, 1, 2, 3].map(() => envoy.request({}))
    const old = late.find((one) => envoy.streams.get(token)?.sent.some((bytes) => bytes.readUInt32LE(1) === one))
    if (old === undefined) throw new Error('one should be asked for on the first stream')
    envoy.tick(12)
    const isClosed = (): unknown => envoy.streams.get(token)?.isClosed
    expect(isClosed()).toBe(false)
    for (let time = 0; time < 8; time++) envoy.request({})
    expect(envoy.streams.get(token)?.sent.filter((bytes) => bytes[0] === 1)).toHaveLength(2)
    envoy.receive(token, encodeReply(old, goOn))
    expect(envoy.fate(old)).toMatchObject({ kind: 'went-on' })
    envoy.receive(token, encodeReply(id, goOn))
    expect(isClosed()).toBe(true)
  })

  test('of a gateway that shuts down are asked no more, and what it owes still counts', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, retireReply)
    for (let time = 0; time < 8; time++) envoy.request({})
    expect(envoy.streams.get(token)).toMatchObject({ isClosed: false, sent: { length: 1 } })
    envoy.receive(token, encodeReply(id, goOn))
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on' })
    expect(envoy.streams.get(token)?.isClosed).toBe(true)
  })

  test.each([
    { name: 'the older of two goes', goes: 'older' },
    { name: 'the newer of two goes', goes: 'newer' },
    { name: 'the newer of twenty goes', goes: 'newer', more: 18 },
    { name: 'the older of twenty goes', goes: 'older', more: 18 },
  ])('that went with the filter which had opened them are opened anew: $name', ({ goes, more = 0 }) => {
    const { envoy } = waiting()
    for (let time = 0; time < more; time++) envoy.addRoot()
    const newer = envoy.addRoot()
    // As many as there are streams to open.
    for (let time = 0; time < 4; time++) envoy.request({})
    if (goes === 'newer') envoy.removeRoot([newer])
    else envoy.removeRoot()
    const ids = [0, 1, 2, 3].map(() => envoy.request({}))
    const asked = told(envoy).filter(({ message }) => 'id' in message && ids.includes(message.id))
    expect(asked).toHaveLength(ids.length)
  })
})

test.each([
  { name: 'a name', cluster: 'gateway of a', isConfigured: true },
  { name: 'no name', cluster: '', isConfigured: false },
  { name: 'a name that is too long', cluster: 'g'.repeat(121), isConfigured: false },
])('its cluster: $name', ({ cluster, isConfigured }) => {
  expect(start(cluster).isConfigured).toBe(isConfigured)
})

test('half of the table may wait; one more goes on as it came', () => {
  const envoy = start()
  const most = 32_768
  for (let time = 0; time < most; time++) envoy.request({})
  expect(envoy.waiting()).toHaveLength(most)
  expect(envoy.fate(envoy.request({}))).toMatchObject({ kind: 'went-on' })
  envoy.tick(ticksToWait)
  expect(envoy.waiting()).toEqual([])
})
