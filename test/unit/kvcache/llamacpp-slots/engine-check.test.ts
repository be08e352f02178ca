import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { afterEach, expect, test } from '@jest/globals'
import { z } from 'zod'
import { createLlamacppSlotsConnector } from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { createMemorySlotLedger } from '../../../../src/kvcache/slots/memory-slot-ledger.ts'
import type { SessionKey, TenantKey } from '../../../../src/sessions/session-record.ts'
import { connectorParts } from '../../../support/connector-parts.ts'
import { json, startScriptedEngine } from '../scripted-engine.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

type OnMessages = 'takes them' | 'ignores them' | 'ignores them and caches nothing' | 'has no such path'

/** What the engine of a check does with `/v1/messages`, and the tag that its slot then shows. */
const messagesScript = (does: OnMessages) => {
  const bodySchema = z.object({ n_keep: z.number(), id_slot: z.literal(0), cache_prompt: z.literal(false) })
  let tag = 0
  let requests = 0
  return {
    tag: () => tag,
    answer: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      requests += 1
      const { n_keep } = bodySchema.parse(JSON.parse(await textOf(request)))
      if (does === 'takes them') tag = n_keep
      const reused = does === 'ignores them' && requests > 1 ? 36 : 0
      json({ usage: { cache_read_input_tokens: reused } }, does === 'has no such path' ? 404 : 200)(request, response)
    },
  }
}

/** An engine with one slot, which says of each completion that so many tokens were cached, and its check. */
const checkedEngine = async (script: {
  readonly cached: readonly number[]
  /** What is answered with 501, or never. */
  readonly refused?: RegExp
  readonly unanswered?: RegExp
  readonly onMessages?: OnMessages
}) => {
  const { cached, refused = /^$/, unanswered = /^$/, onMessages = 'has no such path' } = script
  const told = [...cached]
  const messages = messagesScript(onMessages)
  const engine = await startScriptedEngine((request, response) => {
    if (request.url === '/v1/messages') return void messages.answer(request, response)
    const usage = () => ({ prompt_tokens_details: { cached_tokens: told.shift() } })
    const answers: readonly (readonly [RegExp, () => unknown])[] = [
      [/^\/slots$/, () => [{ id: 0, is_processing: false, params: { n_keep: messages.tag() } }]],
      [/^\/v1\/models/, () => ({ data: [{ id: 'm' }] })],
      [/^\/v1\/completions/, () => ({ usage: usage() })],
      [/^\/slots\/0/, () => ({ id_slot: 0, n_saved: 36, n_written: 1, n_erased: 36, n_restored: 36 })],
      [/^\/lora-adapters/, () => []],
    ]
    if (unanswered.test(request.url ?? '')) return
    const [, answer] = answers.find(([path]) => path.test(request.url ?? '')) ?? []
    json(answer?.() ?? {}, refused.test(request.url ?? '') ? 501 : 200)(request, response)
  })
  const directory = await mkdtemp(join(tmpdir(), 'check-'))
  const ledger = createMemorySlotLedger()
  const kv = { directory, callTimeoutMs: 5_000, minTokens: 1 }
  const connector = createLlamacppSlotsConnector(kv, connectorParts({ pods: () => [engine.pod] }), { ledger })
  ends.push(
    () => rm(directory, { recursive: true }),
    () => engine.close(),
    () => connector.close(),
  )
  const findings = await connector.check(engine.pod, AbortSignal.timeout(script.unanswered === undefined ? 5_000 : 300))
  return {
    connector,
    texts: findings.map(({ text }) => text),
    kinds: findings.map(({ kind }) => kind),
    actions: engine.requests,
    directory,
    ledger,
    pod: engine.pod,
  }
}

test.each<{ name: string; cached: readonly number[]; kinds: readonly string[] }>([
  { name: 'reuses what was restored', cached: [0, 2, 1, 36], kinds: [] },
  { name: 'reuses nothing of it', cached: [0, 2, 1, 8], kinds: ['engine_reuses_nothing'] },
  { name: 'keeps prompts elsewhere', cached: [0, 2, 35, 36], kinds: ['engine_shares_kv'] },
])('an engine that $name is told so, and its slot is empty and free afterwards', async ({ cached, kinds }) => {
  const checked = await checkedEngine({ cached })

  expect(checked.kinds).toEqual(kinds)
  const actions = checked.actions.filter((line) => line.includes('action='))
  expect(actions.map((line) => line.split('=')[1])).toEqual(['save', 'erase', 'restore', 'erase'])
  expect((await readdir(checked.directory)).filter((file) => file.startsWith('ctx-'))).toEqual([])
  expect(await checked.ledger.list(checked.pod)).toMatchObject([{ inUse: false }])
})

test.each([/save/, /restore/, /action/])(
  'an engine that refuses %s saves nothing, which is said once',
  async (refused) => {
    const checked = await checkedEngine({ cached: [0, 0, 0, 0], refused })

    expect(checked.kinds).toEqual(['engine_saves_nothing'])
    expect(await checked.ledger.list(checked.pod)).toMatchObject([{ inUse: false }])
  },
)

test('an engine that is late with a slot is not judged, and the slot stays held', async () => {
  const checked = await checkedEngine({ cached: [0, 0, 0, 0], unanswered: /save/ })

  expect(checked.kinds).toEqual([])
  expect(checked.actions.filter((line) => line.includes('action='))).toHaveLength(1)
  expect(await checked.ledger.list(checked.pod)).toMatchObject([{ inUse: true }])
})

const messagesTurn = {
  session: 's' as SessionKey,
  tenant: 't' as TenantKey,
  model: 'm',
  turnId: 'turn',
  isMessages: true,
  stored: undefined,
  restarted: false,
  createdAtMs: undefined,
}

test.each([
  { onMessages: 'takes them', remedy: [], reason: 'nothing_stored', slot: 0 },
  { onMessages: 'ignores them', remedy: ['--no-cache-prompt'], reason: 'fields_ignored', slot: -1 },
  { onMessages: 'ignores them and caches nothing', remedy: [], reason: 'fields_ignored', slot: -1 },
  { onMessages: 'has no such path', remedy: [], reason: 'fields_ignored', slot: -1 },
] as const)('of fields on /v1/messages: an engine that $onMessages', async ({ onMessages, remedy, reason, slot }) => {
  const { connector, pod, ledger, texts } = await checkedEngine({ cached: [0, 2, 1, 36], onMessages })

  const prepared = await connector.prepare({ ...messagesTurn, pod }, { signal: AbortSignal.timeout(5_000) })

  expect(texts.map((text) => /--[a-z-]+$/.exec(text)?.[0])).toEqual(remedy)
  expect(prepared).toMatchObject({ presence: { kind: 'miss', reason }, fields: { id_slot: slot, cache_prompt: false } })
  expect(await ledger.list(pod)).toMatchObject([{ inUse: slot === 0 }])
})
