import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { openai } from '../support/client.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { anyApi, opening, type Turn } from './conversation.ts'
import { sessionIdOf, untilStored, view } from './session.ts'

describe.each(['memory', 'redis'] as const)('session that expires before any sweep, %s store', (store) => {
  // No sweep comes first: the store's clock decides at the request.
  const stack = useStack({ store, pods: embeddedPods({ count: 1 }), env: { CTX_REAPER_INTERVAL_MS: '3600000' } })

  const use = (id: string, topic: string): Promise<Turn> =>
    anyApi.send(openai(stack.url), { conversation: opening(topic), streamed: false, headers: { 'x-session-id': id } })

  test('turn after expiry starts the session again and computes every token', async () => {
    const client = openai(stack.url)
    const topic = 'a moment too late'
    const created = await anyApi.create(client, {
      conversation: opening(topic),
      streamed: false,
      // Long enough for a create, its offload and a turn on a busy machine.
      headers: { 'x-session-ttl': '5' },
    })
    const id = sessionIdOf(created)
    await untilStored(client, id, 1)
    const inTime = await use(id, topic)
    expect(inTime.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu; /)
    await eventually(() => expect(view(client, id)).rejects.toMatchObject({ status: 404 }))

    const late = await use(id, topic)

    expect(late.headers.get('x-context-cache')).toBe('miss; reason=session_expired')
    expect(late.headers.get('x-session-id')).toBe(id)
    expect(late.usage?.cached).toBe(0)
  })

  test('many turns at the moment of expiry all find the session expired', async () => {
    const client = openai(stack.url)
    const created = await anyApi.create(client, {
      conversation: opening('many at once'),
      streamed: false,
      headers: { 'x-session-ttl': '1' },
    })
    const id = sessionIdOf(created)
    const expiresAtMs = Date.parse(created.headers.get('x-session-expires-at') ?? '')

    const responses: (string | null)[] = []
    while (!responses.includes('miss; reason=session_expired')) {
      const turns = await Promise.all([use(id, 'many at once'), use(id, 'many at once')])
      responses.push(...turns.map(({ headers }) => headers.get('x-context-cache')))
    }

    expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs)
    expect(
      responses.filter((line) => line?.includes('session_not_found') || line?.includes('session_deleted')),
    ).toEqual([])
  })
})
