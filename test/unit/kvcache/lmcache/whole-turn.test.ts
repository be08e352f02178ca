import { expect, test } from '@jest/globals'
import { request } from 'undici'
import { reportWholeTurn } from '../../../../src/kvcache/lmcache/prepare.ts'
import { createWarnings } from '../../../../src/telemetry/warnings.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  serveTurn,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'

test('turns of a fleet without events store nothing, and start from KV of their session alone', async () => {
  const bed = await startLmcacheBed({ events: false })
  const [pod] = bed.pods
  const cache = bed.connect({ starts: true })
  const [prompt, session] = [newPrompt(), newSession()]
  const { prepared, finished } = await serveTurn(cache, { session, pod, prompt })
  expect(prepared.presence).toEqual({ kind: 'miss', reason: 'engine_cache' })
  expect(prepared.fields).toEqual({ cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) })
  expect(finished).toEqual({ kind: 'none', reason: 'engine_cache' })
  const own = await serveTurn(cache, { session, pod, prompt })
  const other = await serveTurn(cache, { session: newSession(), pod, prompt })
  expect([own.usage.cachedTokens > 0, other.usage.cachedTokens]).toEqual([true, 0])
  await bed.close()
})

test('a turn whose blocks are all cached reports them, and vllm_xargs of the client lose', async () => {
  const bed = await startLmcacheBed()
  const [pod] = bed.pods
  const cache = bed.connect()
  const prompt = newPrompt()
  const tenant = newSession()
  const first = await serveTurn(cache, { session: tenant, pod, prompt })

  const turn = turnOf({ ...newSession(), tenant: tenant.tenant }, pod)
  const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
  expect(fields).toMatchObject(reportWholeTurn)
  const own = { model: 'tiny', prompt, max_tokens: 1, vllm_xargs: { kv_cache_report_mode: 'incremental' } }
  // Members of both, the gateway's last, as Envoy splices them.
  const body = `${JSON.stringify(own).slice(0, -1)},${JSON.stringify(fields).slice(1)}`
  const headers = { 'content-type': 'application/json' }
  await request(`http://${pod.address}/v1/completions`, { method: 'POST', headers, body }).then((answer) =>
    answer.body.dump(),
  )
  const finished = await finishTurn(cache, turn, { claim, usage: { ...first.usage, outputTokens: 1 } })
  expect(finished).toMatchObject({ kind: 'stored', tokens: first.stored?.tokens })
  await bed.close()
})

test('a turn that follows the start of its gateway is stored', async () => {
  const bed = await startLmcacheBed()
  const [pod] = bed.pods
  const cache = bed.connect({ starts: true })
  await cache.check(pod.address, anySignal())
  const { finished } = await serveTurn(cache, { session: newSession(), pod, prompt: newPrompt() })
  expect(finished.kind).toBe('stored')
  await bed.close()
})

test('an engine that reports no turns is a warning until it reports one', async () => {
  const bed = await startLmcacheBed()
  const [pod] = bed.pods
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  const [earlier, turn] = [turnOf(newSession(), pod), turnOf(newSession(), pod)]
  const begun = await bed.connect().prepare(earlier, { signal: anySignal() })
  const warnings = createWarnings({ warn: write, info: write })
  const cache = bed.connect({ settleMs: 1_000, starts: true, warnings })
  await cache.check(pod.address, anySignal())
  expect(await finishTurn(cache, earlier, begun)).toMatchObject({ reason: 'tokens_unknown' })
  expect(lines).toEqual([])
  const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
  const { session_id: _unknown, ...known } = fields
  const usage = await pod.run({ prompt: newPrompt(), fields: known })
  expect(await finishTurn(cache, turn, { claim, usage })).toMatchObject({ reason: 'tokens_unknown' })
  // Its events may come later on a busy machine than the first gateway waits.
  const patient = bed.connect({ starts: true, warnings })
  await patient.check(pod.address, anySignal())
  await serveTurn(patient, { session: newSession(), pod, prompt: newPrompt() })
  const stream = `The KV event stream of ${pod.address} is`
  const cause = 'it did not report a turn, as vLLM 0.32 or later does'
  expect(lines).toEqual([`${stream} unavailable: ${cause}`, `${stream} available again`])
  await bed.close()
})
