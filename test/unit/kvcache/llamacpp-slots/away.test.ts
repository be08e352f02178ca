import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvRemoval } from '../../../../src/kvcache/kv-connector.ts'
import { fileOf, formatPayload } from '../../../../src/kvcache/llamacpp-slots/artefact.ts'
import { createLlamacppSlotsConnector } from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { createMemorySlotLedger } from '../../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisConnection } from '../../../../src/redis/create-redis-connection.ts'
import { type RedisConnection, RedisUnavailableError } from '../../../../src/redis/redis-connection.ts'
import type { SessionKey, TenantKey } from '../../../../src/sessions/session-record.ts'
import { connectorParts } from '../../../support/connector-parts.ts'
import { eventually } from '../../../support/eventually.ts'
import { type Answer, json, type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

const idleSlot = json([{ id: 0, is_processing: false, n_prompt_tokens: 9 }])
const answerAsUsual: Answer = (request, response) => (request.url === '/slots' ? idleSlot : json({}))(request, response)
let answer: Answer
let engine: ScriptedEngine
let redis: RedisConnection
let connector: ReturnType<typeof createLlamacppSlotsConnector>
let directory: string
let pods: readonly string[]
const warnings: string[] = []
const connect = (own: Parameters<typeof createLlamacppSlotsConnector>[2]) =>
  createLlamacppSlotsConnector(
    { directory, callTimeoutMs: 5_000, minTokens: 1 },
    connectorParts({
      redis,
      pods: () => pods,
      log: { debug: () => {}, info: () => {}, warn: (message) => warnings.push(message) },
    }),
    own,
  )
beforeEach(async () => {
  answer = answerAsUsual
  engine = await startScriptedEngine((request, response) => answer(request, response))
  pods = [engine.pod]
  directory = await mkdtemp(join(tmpdir(), 'away-'))
  redis = await createRedisConnection({ url: 'redis://127.0.0.1:1', onFault: () => {} })
  connector = connect({})
})
afterEach(async () => {
  await connector.close()
  await redis.close()
  await engine.close()
  await rm(directory, { recursive: true, force: true })
})

const session = 'session' as SessionKey
const removal = (of = session): KvRemoval => ({ kind: 'session', session: of, payload: undefined })
const turn = () => ({ session, tenant: 'tenant' as TenantKey, model: 'm', turnId: 't', pod: engine.pod })
const signal = () => AbortSignal.timeout(5_000)
const leaving = { leaseMs: 60_000, artefactId: undefined, mayWait: false, slots: [{ id: 0, idle: true }] }
const claim = () => ({ pod: engine.pod, slot: 0, previousTask: -1, tag: 1, fingerprint: 'f' })

describe('while the ledger is unavailable', () => {
  test('a turn is not prepared', async () => {
    const starting = { ...turn(), stored: undefined, restarted: false, mayLoad: true, createdAtMs: undefined }
    await expect(connector.prepare(starting, { signal: signal() })).rejects.toThrow(RedisUnavailableError)
  })

  test('an ended turn is not saved, and no engine is called', async () => {
    const tokens = { totalTokens: 100, promptTokens: 90, createdAtMs: 0 }
    const ended = { ...turn(), ...tokens, claim: claim(), announce: async () => {}, signal: signal() }
    await expect(connector.finish(ended)).rejects.toThrow(RedisUnavailableError)
    expect(engine.requests.filter((line) => line.startsWith('POST'))).toEqual([])
  })

  test('a release is logged', async () => {
    await connector.release({ ...turn(), claim: claim(), signal: signal() })
    expect(warnings).toContain('a slot was not released; its lease ends by itself')
  })

  test('a removal is tried again', async () => {
    await expect(connector.remove(removal(), signal())).rejects.toThrow(RedisUnavailableError)
  })

  test.each([100, 1_200])('a sweep of %d files removes all orphans, and looks at 500 without any', async (count) => {
    const ids = Array.from({ length: count }, (_, index) => `${index}`.padStart(40, '0'))
    await Promise.all(ids.map((id) => writeFile(join(directory, fileOf(id)), 'x')))
    const sweep = async (isKnown: boolean) => {
      let asked = 0
      const known = async (names: readonly string[]) => {
        asked += names.length
        return new Set(isKnown ? names : [])
      }
      await connector.sweep({ known, forget: async () => {} }, signal())
      return { left: (await readdir(directory)).filter((name) => name.startsWith('ctx-')).length, asked }
    }
    expect(await sweep(true)).toEqual({ left: count, asked: Math.min(count, 500) })
    expect(await sweep(false)).toMatchObject({ left: 0 })
  })
})

test.each([
  { name: 'no pod', known: [] },
  { name: 'only names of pods', known: ['engine-0:8080', 'engine-1:8080'] },
])('a gateway that has known $name keeps the removal of a session', async ({ known }) => {
  await connector.close()
  connector = connect({ ledger: createMemorySlotLedger() })
  pods = known
  expect(await connector.remove(removal(), signal())).toEqual({ kind: 'busy', reason: 'no pod is known' })
  for (const found of [['[::1]:1'], []]) {
    pods = found
    expect(await connector.remove(removal(), signal())).toEqual({ kind: 'removed' })
  }
})

test('while the artefact store is away, the removal of a session empties its slots, and is tried again', async () => {
  const ledger = createMemorySlotLedger()
  await ledger.claim({ ...leaving, pod: engine.pod, session, turnId: 't' })
  await ledger.release({ pod: engine.pod, slot: 0, turnId: 't', content: { tokens: 9, mark: 'm' } })
  const away = () => Promise.reject(new Error('away'))
  await connector.close()
  connector = connect({ ledger, store: { save: away, load: away, remove: away } })
  const payload = formatPayload({ file: fileOf('0'.repeat(40)), fingerprint: 'f', content: undefined })
  await expect(connector.remove({ kind: 'session', session, payload }, signal())).rejects.toThrow('away')
  await eventually(() => engine.requests.includes('POST /slots/0?action=erase'))
})

describe('while an engine', () => {
  test.each([
    { name: 'refuses actions', refused: /POST/, status: 501 },
    { name: 'refuses everything', refused: /POST|GET/, status: 503 },
  ])('$name, only the removal of a session whose KV lies there waits', async ({ refused, status }) => {
    answer = (...call) => (refused.test(`${call[0].method}`) ? json({}, status) : answerAsUsual)(...call)
    const ledger = createMemorySlotLedger()
    await connector.close()
    connector = connect({ ledger })
    const slot = { pod: engine.pod, slot: 0 }
    for (const turnId of ['owner', 'failed']) {
      await ledger.claim({ ...slot, ...leaving, session: turnId as SessionKey, turnId })
      const content = turnId === 'owner' ? { tokens: 9, mark: 'm' } : undefined
      await ledger.release({ ...slot, turnId, content })
    }
    expect(await connector.remove(removal(), signal())).toEqual({ kind: 'removed' })
    expect(await connector.remove(removal('failed' as SessionKey), signal())).toEqual({ kind: 'removed' })
    expect(await connector.remove(removal('owner' as SessionKey), signal())).toMatchObject({ kind: 'busy' })
  })

  test('hangs, a sweep removes orphans all the same', async () => {
    answer = () => {}
    await writeFile(join(directory, fileOf('0'.repeat(40))), 'x')
    const artefacts = { known: async () => new Set<string>(), forget: async () => {} }
    await connector.sweep(artefacts, AbortSignal.timeout(4_000))
    expect(await readdir(directory)).not.toContain(fileOf('0'.repeat(40)))
  })
})
