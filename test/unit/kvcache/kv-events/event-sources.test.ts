import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createEngineHttp, type EngineHttp } from '../../../../src/engines/engine-http.ts'
import {
  createEventSources,
  type EventSources,
  readEventSources,
} from '../../../../src/kvcache/kv-events/event-sources.ts'

const publisher = {
  enable_kv_cache_events: true,
  publisher: 'zmq',
  endpoint: 'tcp://*:5557',
  topic: 'kv-events',
}
const found = { endpoint: 'tcp://10.0.0.7:5557', topic: 'kv-events' }

describe('readEventSources', () => {
  test.each<{ readonly name: string; readonly pod?: string; readonly answer: unknown; readonly expected: unknown }>([
    { name: 'every address as the pod’s own', answer: { 0: publisher }, expected: [found] },
    {
      name: 'one source per data parallel rank',
      answer: { 0: publisher, 1: { ...publisher, endpoint: 'tcp://*:5560' } },
      expected: [found, { ...found, endpoint: 'tcp://10.0.0.7:5560' }],
    },
    {
      name: 'IPv6',
      pod: '[fd00::7]:8000',
      answer: { 0: { ...publisher, endpoint: 'tcp://[::]:5557' } },
      expected: [{ ...found, endpoint: 'tcp://[fd00::7]:5557' }],
    },
    {
      name: 'addresses that name a host or a file, as they are',
      answer: { 0: { ...publisher, endpoint: 'ipc:///run/events' } },
      expected: [{ ...found, endpoint: 'ipc:///run/events' }],
    },
    {
      name: 'no topic',
      answer: { 0: { ...publisher, topic: undefined } },
      expected: [{ ...found, topic: '' }],
    },
    {
      name: 'nothing, where events are off',
      answer: { 0: { ...publisher, enable_kv_cache_events: false } },
      expected: [],
    },
    { name: 'nothing of another kind of publisher', answer: { 0: { ...publisher, publisher: 'null' } }, expected: [] },
    { name: 'nothing that stays in a process', answer: { 0: { ...publisher, endpoint: 'inproc://x' } }, expected: [] },
    { name: 'nothing, where there is none', answer: {}, expected: [] },
  ])('reads $name', ({ pod = '10.0.0.7:8000', answer, expected }) => {
    expect(readEventSources(pod, JSON.stringify(answer))).toEqual(expected)
  })

  test.each([
    { name: 'no JSON', text: '<html>' },
    { name: 'a list', text: '[1]' },
    { name: 'a source without address', text: '{"0":{"publisher":"zmq"}}' },
  ])('refuses $name', ({ text }) => {
    expect(() => readEventSources('10.0.0.7:8000', text)).toThrow('in an unknown way')
  })
})

describe('createEventSources', () => {
  let server: Server
  let http: EngineHttp
  let sources: EventSources
  let pod: string
  let answer: { readonly status: number; readonly text: string } | 'silence'
  const never = new AbortController().signal

  beforeEach(async () => {
    server = createServer((request, response) => {
      if (answer === 'silence') return
      response.writeHead(request.url === '/kv_event_sources' ? answer.status : 500).end(answer.text)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    pod = `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
    http = createEngineHttp({ callsPerPod: 1 })
    sources = createEventSources(http)
  })
  afterEach(async () => {
    await http.close()
    server.closeAllConnections()
    server.close()
  })

  test('reads the sources of a pod', async () => {
    answer = { status: 200, text: JSON.stringify({ 0: publisher }) }
    const expected = { endpoint: 'tcp://127.0.0.1:5557', topic: 'kv-events' }
    expect(await sources(pod, never)).toEqual([expected])
  })

  test('is empty when the engine answers 404', async () => {
    answer = { status: 404, text: '{}' }
    expect(await sources(pod, never)).toEqual([])
  })

  test.each<{ readonly name: string; readonly given: typeof answer; readonly message: string }>([
    { name: 'an engine that fails', given: { status: 503, text: '' }, message: 'status 503' },
    { name: 'an answer that is not JSON', given: { status: 200, text: 'ok' }, message: 'unknown way' },
  ])('throws for $name', async ({ given, message }) => {
    answer = given
    await expect(sources(pod, never)).rejects.toThrow(message)
  })

  test('throws for an engine that does not answer in time', async () => {
    answer = 'silence'
    await expect(createEventSources(http, 20)(pod, never)).rejects.toThrow('does not answer')
  })
})
