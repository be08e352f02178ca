import { hash } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { KvRemoval, PrepareBudget, StartingTurn } from '../../../../src/kvcache/kv-connector.ts'
import { fileOf, formatPayload } from '../../../../src/kvcache/llamacpp-slots/artefact.ts'
import { slotClaim } from '../../../../src/kvcache/llamacpp-slots/claim.ts'
import { createLlamacppSlotsConnector } from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { createMemorySlotLedger } from '../../../../src/kvcache/slots/memory-slot-ledger.ts'
import type { SlotContent, SlotLedger } from '../../../../src/kvcache/slots/slot-ledger.ts'
import { createRedisConnection } from '../../../../src/redis/create-redis-connection.ts'
import { type RedisConnection, RedisUnavailableError } from '../../../../src/redis/redis-connection.ts'
import type { SessionKey, TenantKey } from '../../../../src/sessions/session-record.ts'
import { connectorParts } from '../../../support/connector-parts.ts'
import { eventually } from '../../../support/eventually.ts'
import { type Answer, json, type ScriptedEngine, startScriptedEngine } from '../scripted-engine.ts'

const slot = { id: 0, is_processing: false, id_task: 7, n_prompt_tokens: 9, params: { n_keep: 1 } }
const other = { id_slot: 0, n_saved: 9, n_written: 1, n_erased: 9, n_restored: 9, data: [{ id: 'm' }] }
const answering =
  (own: object): Answer =>
  (request, response) =>
    request.url === '/lora-adapters'
      ? json([])(request, response)
      : json(request.url === '/slots' ? [{ ...slot, ...own }] : { ...other, ...own })(request, response)
const answerAsUsual = answering({})
let answer: Answer
let engine: ScriptedEngine
let redis: RedisConnection
let ledger: SlotLedger
let connector: ReturnType<typeof createLlamacppSlotsConnector>
let directory: string
let pods: readonly string[]
const warnings: string[] = []
const log = { debug: () => {}, info: () => {}, warn: (message: string) => warnings.push(message) }
const connect = (own: Parameters<typeof createLlamacppSlotsConnector>[2]) => {
  const kv = { directory, callTimeoutMs: 5_000, minTokens: 1 }
  return createLlamacppSlotsConnector(kv, connectorParts({ redis, pods: () => pods, log }), own)
}
beforeEach(async () => {
  answer = answerAsUsual
  engine = await startScriptedEngine((request, response) => answer(request, response))
  pods = [engine.pod]
  directory = await mkdtemp(join(tmpdir(), 'away-'))
  redis = await createRedisConnection({ url: 'redis://127.0.0.1:1', onFault: () => {} })
  ledger = createMemorySlotLedger()
  connector = connect({ ledger })
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
const actions = () => engine.requests.filter((line) => line.startsWith('POST'))
const signal = () => AbortSignal.timeout(5_000)
const first = { stored: undefined, restarted: false, createdAtMs: undefined }
const prepare = (rest: Partial<StartingTurn> = {}, budget: Partial<PrepareBudget> = {}) =>
  connector.prepare({ ...turn(), ...first, ...rest }, { signal: signal(), ...budget })
/** Leaves the slot with what a turn left in it, and KV of its session in the folder. */
const store = async (content?: SlotContent) => {
  const { fingerprint } = slotClaim.parse((await prepare()).claim)
  await ledger.release({ pod: engine.pod, slot: 0, turnId: 't', content })
  const file = fileOf('0'.repeat(40))
  await writeFile(join(directory, file), 'x')
  const payload = formatPayload({ file, fingerprint, content: { bytes: 1, sha256: hash('sha256', 'x') } })
  return { artefactId: 'a', payload, tokens: 9, bytes: 1 }
}
const tokens = { totalTokens: 9, promptTokens: 8, createdAtMs: 0 }
const ended = () => ({ ...turn(), ...tokens, claim: claim(), announce: async () => {}, signal: signal() })
const noArtefacts = { known: async () => new Set<string>(), forget: async () => {} }
const leaving = { leaseMs: 60_000, artefactId: undefined, mayWait: false, slots: [{ id: 0, idle: true }] }
const claim = () => ({ pod: engine.pod, slot: 0, previousTask: -1, tag: 1, fingerprint: 'f' })

describe('while the ledger is unavailable', () => {
  beforeEach(async () => {
    await connector.close()
    connector = connect({})
  })

  test.each<[string, () => Promise<unknown>]>([
    ['turn is not prepared', () => prepare()],
    ['ended turn is not saved', () => connector.finish(ended())],
    ['removal is tried again', () => connector.remove(removal(), signal())],
  ])('a %s, and no engine acts', async (_name, call) => {
    await expect(call()).rejects.toThrow(RedisUnavailableError)
    expect(actions()).toEqual([])
  })

  test('a release is logged', async () => {
    await connector.release({ ...turn(), claim: claim(), signal: signal() })
    expect(warnings).toContain('a slot was not released; its lease ends by itself')
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
  pods = known
  expect(await connector.remove(removal(), signal())).toEqual({ kind: 'busy', reason: 'no pod is known' })
  for (const found of [['[::1]:1'], []]) {
    pods = found
    expect(await connector.remove(removal(), signal())).toEqual({ kind: 'removed' })
  }
})

test('while the artefact store is away, the removal of a session empties its slots, and is tried again', async () => {
  const away = () => Promise.reject(new Error('away'))
  await connector.close()
  connector = connect({ ledger, store: { save: away, load: away, remove: away } })
  await ledger.claim({ ...leaving, pod: engine.pod, session, turnId: 't' })
  await ledger.release({ pod: engine.pod, slot: 0, turnId: 't', content: { tokens: 9, mark: 'm' } })
  const payload = formatPayload({ file: fileOf('0'.repeat(40)), fingerprint: 'f', content: undefined })
  await expect(connector.remove({ kind: 'session', session, payload }, signal())).rejects.toThrow('away')
  await eventually(() => engine.requests.includes('POST /slots/0?action=erase'))
})

test.each<{ name: string; refusal: 'load_timeout' | undefined; presence: object }>([
  { name: 'is done', refusal: undefined, presence: { kind: 'hit', tier: 'store', tokens: 9 } },
  { name: 'is refused', refusal: 'load_timeout', presence: { kind: 'miss', reason: 'load_timeout' } },
])('a load $name as the budget says', async ({ refusal, presence }) => {
  const prepared = await prepare({ stored: await store() }, { refuseLoad: async () => refusal })
  expect(prepared.presence).toMatchObject(presence)
  expect(actions()).toHaveLength(refusal === undefined ? 1 : 0)
})

describe('while an engine', () => {
  test.each([
    { name: 'refuses actions', refused: /POST/, status: 501 },
    { name: 'refuses everything', refused: /POST|GET/, status: 503 },
  ])('$name, only the removal of a session whose KV lies there waits', async ({ refused, status }) => {
    answer = (...call) => (refused.test(`${call[0].method}`) ? json({}, status) : answerAsUsual)(...call)
    for (const turnId of ['owner', 'failed']) {
      await ledger.claim({ ...leaving, pod: engine.pod, session: turnId as SessionKey, turnId })
      const content = turnId === 'owner' ? { tokens: 9, mark: 'm' } : undefined
      await ledger.release({ pod: engine.pod, slot: 0, turnId, content })
    }
    expect(await connector.remove(removal(), signal())).toEqual({ kind: 'removed' })
    expect(await connector.remove(removal('failed' as SessionKey), signal())).toEqual({ kind: 'removed' })
    expect(await connector.remove(removal('owner' as SessionKey), signal())).toMatchObject({ kind: 'busy' })
  })

  test('hangs, a sweep removes orphans all the same', async () => {
    answer = () => {}
    await writeFile(join(directory, fileOf('0'.repeat(40))), 'x')
    await connector.sweep(noArtefacts, AbortSignal.timeout(4_000))
    expect(await readdir(directory)).not.toContain(fileOf('0'.repeat(40)))
  })
})

test.each([
  { name: 'still computes', busy: true, lapsedMs: 120_000, keeps: true },
  { name: 'may have ended a moment ago', busy: false, lapsedMs: 0, keeps: true },
  { name: 'is over for long', busy: false, lapsedMs: 120_000, keeps: false },
])('a turn that nobody renews and that $name keeps its slot: $keeps', async ({ busy, lapsedMs, keeps }) => {
  answer = answering({ is_processing: busy })
  await ledger.claim({ ...leaving, pod: engine.pod, session, turnId: 't', leaseMs: -lapsedMs })
  await connector.remove(removal('other' as SessionKey), signal())
  await connector.sweep(noArtefacts, signal())
  await connector.check(engine.pod, signal()).catch(() => [])
  expect(await ledger.renew([{ pod: engine.pod, slot: 0, turnId: 't' }], { leaseMs: 1 })).toEqual([keeps])
})

test.each([
  { name: 'is forwarded', content: { tokens: 9, mark: '[7,9,1]' } },
  { name: 'loads', content: undefined },
])('no turn $name to a slot that another one took while its gateway stood still', async ({ content }) => {
  const stored = await store(content)
  const take = ledger.claim.bind(ledger)
  jest.spyOn(ledger, 'claim').mockImplementationOnce(async (request) => {
    const claimed = await take(request)
    jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 7_000)
    await take({ ...request, session: 'other' as SessionKey, turnId: 'other' })
    return claimed
  })
  const { presence } = await prepare({ turnId: 'late', stored })
  jest.restoreAllMocks()
  expect([presence, actions()]).toEqual([{ kind: 'miss', reason: 'no_slot' }, []])
})

test('an engine that was replaced is another one once it was checked, and for turns that end later', async () => {
  const { fingerprint } = slotClaim.parse((await prepare()).claim)
  answer = answering({ build_info: 'b2' })
  await connector.check(engine.pod, signal()).catch(() => [])
  const late = connector.finish({ ...ended(), claim: { ...claim(), fingerprint } })
  expect(await late).toEqual({ kind: 'none', reason: 'not_verified' })
})

test('a sweep drops KV of other engines once all pods answer, also one whose name had no address', async () => {
  await writeFile(join(directory, fileOf('0'.repeat(50))), 'x')
  const forget = jest.fn(async () => {})
  for (const calls of [0, 1]) {
    pods = calls === 0 ? [engine.pod, 'localhost:1'] : [engine.pod]
    await connector.sweep({ known: async (ids) => new Set(ids), forget }, signal())
    expect(forget).toHaveBeenCalledTimes(calls)
  }
})
