import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { fileOf } from '../../../../src/kvcache/llamacpp-slots/artefact.ts'
import { formatClaim } from '../../../../src/kvcache/llamacpp-slots/claim.ts'
import {
  createLlamacppSlotsConnector,
  type LlamacppSlotsConnector,
} from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { fieldsWithoutSlot } from '../../../../src/kvcache/llamacpp-slots/engine-fields.ts'
import { createRedisSlotLedger } from '../../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import { createRedisConnection } from '../../../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../../../src/redis/redis-connection.ts'
import type { SessionKey, TenantKey } from '../../../../src/sessions/session-record.ts'
import { json, type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

let engine: ScriptedEngine
let redis: RedisConnection
let connector: LlamacppSlotsConnector
let directory: string
const warnings: string[] = []
beforeEach(async () => {
  engine = await startScriptedEngine((request, response) =>
    json(request.url === '/slots' ? [{ id: 0, is_processing: false }] : {})(request, response),
  )
  directory = await mkdtemp(join(tmpdir(), 'away-'))
  redis = await createRedisConnection({ url: 'redis://127.0.0.1:1', onFault: () => {} })
  connector = createLlamacppSlotsConnector({
    ledger: createRedisSlotLedger(redis),
    pods: () => [engine.pod],
    kvDirectory: directory,
    callTimeoutMs: 5_000,
    secret: 'secret',
    maxTurnMs: 60_000,
    orphanGraceMs: 0,
    log: { debug: () => {}, info: () => {}, warn: (message) => warnings.push(message) },
  })
})
afterEach(async () => {
  await connector.close()
  await redis.close()
  await engine.close()
  await rm(directory, { recursive: true, force: true })
})

const session = 'session' as SessionKey
const turn = () => ({ session, tenant: 'tenant' as TenantKey, model: 'm', turnId: 't', pod: engine.pod })
const signal = () => AbortSignal.timeout(5_000)
const claim = () => formatClaim({ pod: engine.pod, slot: 0, tag: 1, fingerprint: 'f' })

describe('while the ledger is unavailable', () => {
  test('a turn goes on without its KV', async () => {
    const { presence, fields } = await connector.attach(turn(), undefined, { signal: signal() })
    expect([presence.kind, fields]).toEqual(['failed', expect.objectContaining(fieldsWithoutSlot)])
  })

  test('an offload stores nothing and calls no engine', async () => {
    const request = { turn: turn(), claim: claim(), totalTokens: 100, announce: async () => {}, signal: signal() }
    expect(await connector.offload(request)).toMatchObject({ kind: 'none', reason: 'offload_failed' })
    expect(engine.requests.filter((line) => line.startsWith('POST'))).toEqual([])
  })

  test('a detach logs that the claim could not be released', async () => {
    await connector.detach(turn(), claim(), signal())
    expect(warnings).toContain('a slot was not released; its lease ends by itself')
  })

  test('a removal is busy', async () => {
    const removal = { kind: 'session', session, payload: undefined } as const
    expect(await connector.remove(removal, signal())).toMatchObject({ kind: 'busy' })
  })

  test('reconcile removes orphaned files', async () => {
    await writeFile(join(directory, fileOf('ab'.repeat(20))), 'x')
    expect(await connector.reconcile(async () => new Set(), signal())).toBe(1)
  })
})
