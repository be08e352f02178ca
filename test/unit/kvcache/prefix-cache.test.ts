import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import type { StartingTurn } from '../../../src/kvcache/kv-connector.ts'
import { createPrefixCacheConnector } from '../../../src/kvcache/prefix-cache/connector.ts'
import { anySignal, newSession, type TestSession, turnOf } from '../../contract/kvcache/kv-test-bed.ts'
import { connectorParts } from '../../support/connector-parts.ts'

type Options = Partial<Parameters<typeof createPrefixCacheConnector>[0]>
const create = (options: Options = {}) =>
  createPrefixCacheConnector({ isolation: 'tenant', prefixCache: { engine: 'vllm' }, ...options }, connectorParts())

const anyPod = { address: '127.0.0.1:9' }
const fieldsOf = async (
  connector: ReturnType<typeof create>,
  session: TestSession,
  turn: Partial<StartingTurn> = {},
) => {
  const starting = { stored: undefined, restarted: false, createdAtMs: undefined }
  return (await connector.prepare({ ...turnOf(session, anyPod), ...starting, ...turn }, { signal: anySignal() })).fields
}

describe('salt fields', () => {
  test.each<{ name: string; options: Options; members: readonly string[] }>([
    { name: 'of vLLM', options: {}, members: ['cache_salt'] },
    { name: 'of SGLang', options: { prefixCache: { engine: 'sglang' } }, members: ['cache_salt', 'extra_key'] },
    {
      name: 'of the configuration',
      options: { prefixCache: { engine: 'sglang', saltFields: ['my_salt'] } },
      members: ['my_salt'],
    },
  ])('are those $name, with and without a session', async ({ options, members }) => {
    const connector = create(options)
    const session = newSession()
    const salted = Object.fromEntries(members.map((member) => [member, expect.stringMatching(/^[0-9a-f]{32}$/)]))

    expect(await fieldsOf(connector, session)).toEqual(salted)
    expect(connector.isolation?.(session.tenant)).toEqual(salted)
  })

  test('change with the version of the weights', async () => {
    const session = newSession()
    const salts = await Promise.all(['1', '2', '1'].map((modelVersion) => fieldsOf(create({ modelVersion }), session)))
    expect(salts[1]).not.toEqual(salts[0])
    expect(salts[2]).toEqual(salts[0])
  })

  test('change when a session starts anew, isolation by session', async () => {
    const connector = create({ isolation: 'session' })
    const session = newSession()

    const before = await fieldsOf(connector, session)

    expect(await fieldsOf(connector, session, { restarted: true })).not.toEqual(before)
  })
})

// An engine lets a request start from KV of the same salts alone.
describe('the salt fields of a session', () => {
  const session = newSession()
  const fellow = newSession()
  const stranger = newSession('another tenant')
  const rows = [
    { name: 'of the session', isolation: 'tenant', asks: session, isSame: true },
    { name: 'of the session', isolation: 'session', asks: session, isSame: true },
    { name: 'of another session of the tenant', isolation: 'tenant', asks: fellow, isSame: true },
    { name: 'of another session of the tenant', isolation: 'session', asks: fellow, isSame: false },
    { name: 'of another tenant', isolation: 'tenant', asks: stranger, isSame: false },
    { name: 'without a session', isolation: 'tenant', asks: undefined, isSame: false },
    { name: 'without a session', isolation: 'session', asks: undefined, isSame: false },
  ] as const
  test.each(rows)(
    'are those of a request $name: $isSame, isolation by $isolation',
    async ({ isolation, asks, isSame }) => {
      const connector = create({ isolation })
      const fields = asks === undefined ? connector.isolation?.(session.tenant) : await fieldsOf(connector, asks)

      expect(isDeepStrictEqual(fields, await fieldsOf(connector, session))).toBe(isSame)
    },
  )
})
