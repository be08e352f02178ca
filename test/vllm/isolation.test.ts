import { readdir } from 'node:fs/promises'
import { describe, expect, jest, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { unknownId } from '../integration/support/sessions.ts'
import { vllmFleet, vllmPod } from './support/fleet.ts'
import { completeOn, tokenize } from './support/pod.ts'
import { freshPrompt } from './support/prompts.ts'
import { newSalts } from './support/salts.ts'
import { type SessionClient, sessionClient } from './support/session.ts'
import { lookUp } from './support/store.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

/** What a request can name of a session that is not its own. */
interface Target {
  readonly id: string
  /** The id of a deleted session of the same tenant. */
  readonly deleted: string
  /** Of the session's turns. Nobody but the gateway knows it. */
  readonly salt: string
}

/** A request without an id keeps its salt, so it is given one that a client can know. */
const ownMembers = ({ id, salt }: Target, isATurn: boolean) => {
  const known = isATurn ? salt : id
  const transfer = { do_remote_prefill: true, 'lmcache.cache_salt': known, cache_salt: known }
  return { cache_salt: known, kv_transfer_params: transfer, kv_hints: transfer, id_slot: 0, cache_prompt: true }
}

interface Probe {
  readonly name: string
  readonly path?: string
  readonly id?: (target: Target) => string
  readonly hasOwnMembers?: boolean
}

const forms: readonly Probe[] = [
  { name: 'a new session', path: '/v1/context' },
  { name: 'no id' },
  { name: 'an unknown id', id: () => unknownId },
  { name: 'the id of a deleted session', id: ({ deleted }) => deleted },
  { name: 'the id of the session', id: ({ id }) => id },
]
const probes = [
  ...forms,
  ...forms.map((form) => ({ ...form, name: `${form.name}, and members of its own`, hasOwnMembers: true })),
]

const isTurn = ({ path, id }: Probe): boolean => path !== undefined || id !== undefined

/** The salt under which the store holds the prompt's first chunk. */
const saltOf = async (prompt: string): Promise<string> => {
  const { results } = await lookUp({ tokenIds: await tokenize(vllmPod(0), prompt), salt: '' })
  const names = await readdir(vllmFleet().l2Directory)
  const [salt] = names.flatMap((name) => name.split(`@${results[0]?.key.chunk_hash_hex}@`)[1] ?? [])
  if (salt === undefined) throw new Error('the store does not hold the prompt')
  return salt.replace('.data', '')
}

/** A session with a prompt that nobody sent before, so that no probe starts from what another one left. */
const newTarget = async (client: SessionClient, prompt: string): Promise<Target> => {
  const { id: deleted } = await client.create('a short prompt')
  await client.remove(deleted)
  const { id } = await client.create(prompt)
  await client.settled(id, 1)
  return { id, deleted, salt: await saltOf(prompt) }
}

describe.each(['tenant', 'session'] as const)('isolation: %s', (isolation) => {
  const stack = useVllmStack({ env: { CTX_KV_ISOLATION: isolation, CTX_ROUTING_POLICY: 'round-robin' } })

  test.each([
    { caller: 'another tenant', authorization: 'Bearer other' },
    { caller: 'nobody', authorization: '' },
    ...(isolation === 'session' ? [{ caller: 'its tenant', authorization: 'Bearer test-key' }] : []),
  ])('no request of $caller starts from KV of a session', async ({ caller, authorization }) => {
    const client = sessionClient(stack())
    const wanted = probes.filter(({ name }) => caller !== 'its tenant' || !name.startsWith('the id of the session'))
    const seen = wanted.map(async (probe) => {
      const { name, path, id, hasOwnMembers } = probe
      const prompt = freshPrompt(450)
      const target = await newTarget(client, prompt)
      const { status, text } = await call(`${stack().url}${path ?? '/v1/completions'}`, {
        headers: { authorization, ...(id === undefined ? {} : { 'x-session-id': id(target) }) },
        body: {
          model: vllmFleet().servedModelName,
          prompt,
          max_tokens: 1,
          ...(hasOwnMembers === true ? ownMembers(target, isTurn(probe)) : {}),
        },
      })
      // The engine that was asked would have had it.
      const onPods = [vllmPod(0), vllmPod(1)].map((pod) => completeOn(pod, { prompt, salt: target.salt }))
      const engines = await Promise.all(onPods)
      await client.remove(target.id)
      const isThere = engines.every(({ cachedTokens }) => cachedTokens > 0)
      return { name, isThere, status, cachedTokens: /"cached_tokens":(\d+)/.exec(text)?.[1] }
    })

    expect(await Promise.all(seen)).toEqual(
      wanted.map((probe) => {
        const isRefused = caller === 'nobody' && isTurn(probe)
        const answer = isRefused ? { status: 401, cachedTokens: undefined } : { status: 200, cachedTokens: '0' }
        return { name: probe.name, isThere: true, ...answer }
      }),
    )
  })

  test(`sessions of one tenant ${isolation === 'tenant' ? 'share equal prefixes' : 'share nothing'}`, async () => {
    const common = freshPrompt(450)
    const client = sessionClient(stack())
    const first = await client.create(`${common} for the first`)
    const { kv } = await client.settled(first.id, 1)

    const second = await client.create(`${common} for the second`)

    expect(second.cachedTokens).toBe(isolation === 'tenant' ? kv.stored?.tokens : 0)
    await client.remove(first.id)
    await client.remove(second.id)
  })

  test('a salt that a client sends is dropped', async () => {
    const prompt = freshPrompt(450)
    const client = sessionClient(stack())
    const chosen = 'a-salt-of-the-client'
    const salts = await newSalts(async () => {
      const created = await client.create(prompt, { body: { cache_salt: chosen } })
      await client.settled(created.id, 1)
      await client.use(created.id, `${prompt} more`, { body: { cache_salt: chosen } })
      await client.use(unknownId, `${prompt} and an unknown session`, { body: { cache_salt: chosen } })
      await client.remove(created.id)
    })

    expect(salts).not.toContain(chosen)
    const onPods = [vllmPod(0), vllmPod(1)].map((pod) => completeOn(pod, { prompt, salt: chosen }))
    expect((await Promise.all(onPods)).map(({ cachedTokens }) => cachedTokens)).toEqual([0, 0])
  })
})
