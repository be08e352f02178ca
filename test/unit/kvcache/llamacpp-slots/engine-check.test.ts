import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { createLlamacppSlotsConnector } from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { createMemorySlotLedger } from '../../../../src/kvcache/slots/memory-slot-ledger.ts'
import { connectorParts } from '../../../support/connector-parts.ts'
import { json, startScriptedEngine } from '../scripted-engine.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

/** An engine with one slot, which says of each completion that so many tokens were cached, and its check. */
const checkedEngine = async (script: {
  readonly cached: readonly number[]
  /** What is answered with 501, or never. */
  readonly refused?: RegExp
  readonly unanswered?: RegExp
}) => {
  const { cached, refused = /^$/, unanswered = /^$/ } = script
  const told = [...cached]
  const engine = await startScriptedEngine((request, response) => {
    const usage = () => ({ prompt_tokens_details: { cached_tokens: told.shift() } })
    const answers: readonly (readonly [RegExp, () => unknown])[] = [
      [/^\/slots$/, () => [{ id: 0, is_processing: false }]],
      [/^\/v1\/models/, () => ({ data: [{ id: 'm' }] })],
      [/^\/v1\/completions/, () => ({ usage: usage() })],
      [/^\/slots\/0/, () => ({ id_slot: 0, n_saved: 36, n_written: 1, n_erased: 36, n_restored: 36 })],
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
  return { kinds: findings.map(({ kind }) => kind), actions: engine.requests, directory, ledger, pod: engine.pod }
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
