import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createEngineHttp, type EngineHttp } from '../../../src/engines/engine-http.ts'
import { type ScriptedEngine, startScriptedEngine } from '../kvcache/scripted-engine.ts'

let engine: ScriptedEngine
let http: EngineHttp
const connections = new Set<Socket>()
const received: { readonly type: string | undefined; readonly text: string }[] = []

beforeEach(async () => {
  connections.clear()
  received.length = 0
  engine = await startScriptedEngine((request, response) => {
    connections.add(request.socket)
    void text(request).then((body) => {
      received.push({ type: request.headers['content-type'], text: body })
      response.end('done')
    })
  })
  http = createEngineHttp({ callsPerPod: 1 })
})
afterEach(async () => {
  await http.close()
  await engine.close()
})

const call = (method: 'POST' | 'DELETE', body: unknown) =>
  http.call({ method, pod: engine.pod, path: '/', body, signal: AbortSignal.timeout(5_000) })

test.each([
  { name: 'a value', body: { a: ['ü', 1] }, sent: '{"a":["ü",1]}' },
  { name: 'bytes, which are JSON already', body: Buffer.from('{"a":2}'), sent: '{"a":2}' },
])('an engine is sent $name', async ({ body, sent }) => {
  expect(await call('POST', body)).toEqual({ kind: 'answered', status: 200, text: 'done' })
  expect(received).toEqual([{ type: 'application/json', text: sent }])
})

test.each(['POST', 'DELETE'] as const)('%s with a body keeps its connection open for the next call', async (method) => {
  for (let number = 0; number < 5; number += 1) await call(method, { number })
  expect(received).toHaveLength(5)
  expect(connections.size).toBe(1)
})
