import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createEngineHttp, type EngineHttp } from '../../../../src/engines/engine-http.ts'
import {
  createEventSources,
  type EventSources,
  readEventSources,
} from '../../../../src/kvcache/kv-events/event-sources.ts'
import { type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

const publisher = {
  enable_kv_cache_events: true,
  publisher: 'zmq',
  endpoint: 'tcp://*:5557',
  topic: 'kv-events',
}
const found = { endpoint: 'tcp://10.0.0.7:5557', topic: 'kv-events' }

describe('readEventSources', () => {
  const ipv4 = '10.0.0.7:8000'
  const saying = (change: object) => ({ ...publisher, ...change })
  const at = (endpoint: string) => ({ ...found, endpoint })
  test.each<[string, string, readonly object[], unknown]>([
    ['every address as the pod’s own', ipv4, [publisher], [found]],
    [
      'one source per data parallel rank',
      ipv4,
      [publisher, saying({ endpoint: 'tcp://*:5560' })],
      [found, at('tcp://10.0.0.7:5560')],
    ],
    ['IPv6', '[fd00::7]:8000', [saying({ endpoint: 'tcp://[::]:5557' })], [at('tcp://[fd00::7]:5557')]],
    ['addresses of a file, as they are', ipv4, [saying({ endpoint: 'ipc:///run/events' })], [at('ipc:///run/events')]],
    ['no topic', ipv4, [saying({ topic: undefined })], [{ ...found, topic: '' }]],
    ['nothing, where events are off', ipv4, [saying({ enable_kv_cache_events: false })], []],
    ['nothing of another kind of publisher', ipv4, [saying({ publisher: 'null' })], []],
    ['nothing that stays in a process', ipv4, [saying({ endpoint: 'inproc://x' })], []],
    ['nothing, where there is none', ipv4, [], []],
  ])('reads %s', (_name, pod, answers, expected) => {
    const answer = Object.fromEntries(answers.entries())
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
  let engine: ScriptedEngine
  let http: EngineHttp
  let sources: EventSources
  let pod: string
  let answer: { readonly status: number; readonly text: string } | 'silence'
  const never = new AbortController().signal

  beforeEach(async () => {
    engine = await startScriptedEngine((request, response) => {
      if (answer === 'silence') return
      response.writeHead(request.url === '/kv_event_sources' ? answer.status : 500).end(answer.text)
    })
    pod = engine.pod
    http = createEngineHttp({ callsPerPod: 1 })
    sources = createEventSources(http)
  })
  afterEach(async () => {
    await http.close()
    await engine.close()
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
