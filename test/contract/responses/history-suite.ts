import { beforeEach, describe, expect, test } from '@jest/globals'
import { alice, answer, bob, callsOn, message, nameOf, textsOf } from './history-calls.ts'
import type { HistoryStoreUnderTest } from './history-under-test.ts'

const ofTurns = (...ids: readonly string[]): readonly string[] =>
  ids.flatMap((id) => [`question ${id}`, `answer ${id}`])

/**
 * What every store of the history holds, as a turn and a client see it. Trees of turns, forks, deletions and deadlines
 * are compared with a model in test/fuzz/responses/history-trees.test.ts.
 */
export const describeHistory = (name: string, open: () => Promise<HistoryStoreUnderTest>): void => {
  describe(name, () => {
    let under: HistoryStoreUnderTest
    let calls: ReturnType<typeof callsOn>
    beforeEach(async () => {
      under = await open()
      calls = callsOn(under.store)
    })

    test('a chain has the items of all its turns in order, and keeps its root', async () => {
      expect(await calls.begin('r1')).toEqual({ kind: 'stored' })
      const { root } = await calls.chain('r1')
      await calls.follow('r1', 'r2', { inputItems: [message('one'), message('two')] })

      const chain = await calls.chain('r2')
      expect(textsOf(chain.items)).toEqual([...ofTurns('r1'), 'one', 'two', 'answer r2'])
      expect(chain).toMatchObject({ root })
      expect(chain.bytes).toBe(chain.items.reduce((sum, { json }) => sum + json.length, 0))
    })

    test('a chain longer than one read comes back whole', async () => {
      await calls.begin('r0')
      for (let turn = 1; turn < 70; turn += 1) await calls.follow(`r${turn - 1}`, `r${turn}`)

      expect(await calls.texts('r69')).toEqual(ofTurns(...Array.from({ length: 70 }, (_, turn) => `r${turn}`)))
    })

    test('a response comes back as the engine wrote it, with the items that it was computed from', async () => {
      const response = answer('r2', 'first', 'second')
      await calls.begin('r1')
      await calls.follow('r1', 'r2', { response })

      const stored = await calls.history.get({ tenant: alice, id: 'r2' })
      expect(stored?.response).toBe(response)
      expect(textsOf(stored?.inputItems ?? [])).toEqual([...ofTurns('r1'), 'question r2'])
    })

    test('tools, reasoning, refusals, images and unknown items survive byte for byte', async () => {
      const inputItems = [
        '{ "type":"function_call_output", "call_id":"c\\u0031","output":"{\\"n\\":12345678901234567890}" }',
        '{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://a.example/ü.png"}]}',
        '{"type":"something_new","id":"x_1","n":1.0}',
      ]
      const output = [
        '{ "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "AAA=" }',
        '{"id":"fc_1","type":"function_call","call_id":"c2","name":"f","arguments":"{\\"a\\":\\"\u2028]\\"}"}',
        '{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}],"n":12345678901234567890}',
      ]
      await calls.begin('r1', { inputItems, response: `{"id":"r1","output":[ ${output.join(' , ')} ],"model":"m"}` })

      const { items } = await calls.chain('r1')
      expect(items.map(({ json }) => json)).toEqual([...inputItems, ...output])
      const ids = items.map(({ id }) => id)
      expect(ids.slice(2)).toEqual(['x_1', 'rs_1', 'fc_1', 'msg_1'])
      expect(ids[0]).toMatch(/^fco_[\w-]{40}$/)
      expect(ids[1]).toMatch(/^msg_[\w-]{40}$/)
    })

    test('another tenant’s id, and one that never existed, are unknown', async () => {
      await calls.begin('r1')

      expect(await calls.texts('r1', bob)).toBe('unknown')
      expect(await calls.texts('r2')).toBe('unknown')
      expect(await calls.history.get({ tenant: bob, id: 'r1' })).toBeUndefined()
      expect(await calls.responses.remove({ tenant: bob, id: 'r1' })).toEqual({ kind: 'unknown' })
      expect(await calls.follow('r1', 'r3', { tenant: bob })).toEqual({ kind: 'gone' })
      expect(await calls.texts('r1')).toEqual(ofTurns('r1'))
    })

    test('tenants may have responses of one id', async () => {
      await calls.begin('r1')
      await calls.begin('r1', { tenant: bob, inputItems: [message('of bob')] })

      expect(await calls.texts('r1')).toEqual(ofTurns('r1'))
      expect(await calls.texts('r1', bob)).toEqual(['of bob', 'answer r1'])
    })

    test('a second response of one id is refused, and the first stays', async () => {
      await calls.begin('r1')

      expect(await calls.begin('r1', { inputItems: [message('again')] })).toEqual({ kind: 'exists' })
      expect(await calls.texts('r1')).toEqual(ofTurns('r1'))
    })

    test('a deleted response is unknown, and what continues it stays whole', async () => {
      await calls.begin('r1')
      await calls.follow('r1', 'r2')
      const { root } = await calls.chain('r2')
      const deleted = { kind: 'deleted', root, models: ['a-model'] }

      expect(await calls.responses.remove({ tenant: alice, id: 'r1' })).toEqual({ ...deleted, ended: false })
      expect(await calls.texts('r1')).toBe('unknown')
      expect(await calls.history.get({ tenant: alice, id: 'r1' })).toBeUndefined()
      expect(await calls.responses.remove({ tenant: alice, id: 'r1' })).toEqual({ kind: 'unknown' })
      expect(await calls.texts('r2')).toEqual(ofTurns('r1', 'r2'))
      expect(await calls.responses.remove({ tenant: alice, id: 'r2' })).toEqual({ ...deleted, ended: true })
    })

    test('a turn of a conversation holds it, and no other turn comes between', async () => {
      const id = await calls.newConversation()
      expect(await calls.hold(id, 'turn-1')).toMatchObject({ kind: 'found', chain: { items: [], bytes: 0 } })

      expect(await calls.hold(id, 'turn-2')).toEqual({ kind: 'locked' })
      expect(await calls.hold(id, 'turn-1')).toMatchObject({ kind: 'found' })
      expect(await calls.converse(id, 'turn-2', 'r2')).toEqual({ kind: 'gone' })
      expect(await calls.converse(id, 'turn-1', 'r1')).toEqual({ kind: 'stored' })
      expect(await calls.hold(id, 'turn-2')).toMatchObject({ kind: 'found' })
      expect(await calls.converse(id, 'turn-2', 'r2')).toEqual({ kind: 'stored' })
      expect(textsOf((await calls.conversations.items({ tenant: alice, id })) ?? [])).toEqual(ofTurns('r1', 'r2'))
      expect(await calls.texts('r1')).toEqual(ofTurns('r1'))
    })

    test('a lock ends by release, by a turn that cannot be stored, and by time', async () => {
      const id = await calls.newConversation()
      await calls.hold(id, 'turn-1')
      await calls.history.release({ tenant: alice, conversationId: id, turnId: 'turn-2' })
      expect(await calls.hold(id, 'turn-2')).toEqual({ kind: 'locked' })
      await calls.history.release({ tenant: alice, conversationId: id, turnId: 'turn-1' })

      expect(await calls.hold(id, 'turn-2')).toMatchObject({ kind: 'found' })
      expect(await calls.converse(id, 'turn-2', 'r1', { response: 'no JSON' })).toEqual({ kind: 'unreadable' })
      expect(await calls.hold(id, 'turn-3')).toMatchObject({ kind: 'found' })
      await under.advance(10_000)
      expect(await calls.hold(id, 'turn-4')).toMatchObject({ kind: 'found' })
    })

    test('metadata of a conversation are replaced, and its items stay', async () => {
      const id = await calls.newConversation({ metadata: { a: '1' }, items: [message('hello')] })
      expect(await calls.conversations.get({ tenant: alice, id })).toMatchObject({ id, metadata: { a: '1' } })

      const changed = await calls.conversations.setMetadata({ tenant: alice, id, metadata: { b: 'ü'.repeat(512) } })
      expect(changed).toEqual(await calls.conversations.get({ tenant: alice, id }))
      expect(changed?.metadata).toEqual({ b: 'ü'.repeat(512) })
      expect(textsOf((await calls.conversations.items({ tenant: alice, id })) ?? [])).toEqual(['hello'])
      expect(await calls.conversations.setMetadata({ tenant: bob, id, metadata: {} })).toBeUndefined()
    })

    test('what is beyond a limit is not stored, and what was stays', async () => {
      const { begin, follow, texts, conversations } = callsOn(under.store, {
        limits: { maxItemBytes: 2_000, maxConversationBytes: 3_800, maxTenantBytes: 12_000 },
      })
      const large = [message('x'.repeat(1_800))]
      await begin('r1', { inputItems: large })

      expect(await follow('r1', 'r2', { inputItems: [message('x'.repeat(2_001))] })).toEqual({
        kind: 'limited',
        limit: 'item-bytes',
      })
      expect(await follow('r1', 'r2', { inputItems: [...large, ...large] })).toEqual({
        kind: 'limited',
        limit: 'conversation-bytes',
      })
      expect(await follow('r1', 'r2', { inputItems: large })).toEqual({ kind: 'limited', limit: 'conversation-bytes' })
      expect(await texts('r2')).toBe('unknown')
      let count = 0
      while ((await begin(`more-${count}`)).kind === 'stored') count += 1
      expect(await begin('last')).toEqual({ kind: 'limited', limit: 'tenant-bytes' })
      expect(count).toBeGreaterThan(2)
      const metadata = { a: 'x'.repeat(4_000) }
      expect(await conversations.create({ tenant: alice, items: [], metadata, ttlSeconds: 1 })).toEqual({
        kind: 'limited',
        limit: 'tenant-bytes',
      })
      expect(await begin('other', { tenant: bob })).toEqual({ kind: 'stored' })

      await under.advance(100_000)
      for (let again = 0; again < count; again += 1) expect(await begin(`again-${again}`)).toEqual({ kind: 'stored' })
    })

    test('a node has so many forks at most, and more when some have ended', async () => {
      const append = (path: readonly string[], ttlSeconds: number) =>
        under.store.append({
          tenant: alice,
          path,
          text: { items: 'sealed', answer: undefined },
          response: { name: path.join(), path: path.join(), chainBytes: 0, sealed: 'sealed' },
          conversation: undefined,
          ttlSeconds,
          maxTenantBytes: 10_000_000,
        })
      expect(await append(['root.1'], 100)).toBe('stored')
      const outcomes = await Promise.all(
        Array.from({ length: 1_010 }, (_, fork) => append(['root.1', `fork-${fork}.1`], 50)),
      )

      const refused = outcomes.indexOf('full')
      expect(refused).toBeGreaterThanOrEqual(1_000)
      expect(new Set(outcomes.slice(0, refused))).toEqual(new Set(['stored']))
      await under.advance(60_000)
      expect(await append(['root.1', 'later.1'], 50)).toBe('stored')
    })

    test('what is deleted makes room', async () => {
      const { begin, follow, responses, newConversation, conversations } = callsOn(under.store, {
        limits: { maxTenantBytes: 7_000 },
      })
      for (let round = 0; round < 5; round += 1) {
        expect(await begin('r1')).toEqual({ kind: 'stored' })
        expect(await follow('r1', 'r2')).toEqual({ kind: 'stored' })
        const id = await newConversation({ items: [message('hello')], metadata: { a: 'b' } })
        await conversations.setMetadata({ tenant: alice, id, metadata: { long: 'x'.repeat(500) } })
        const [item] = (await conversations.items({ tenant: alice, id })) ?? []
        await conversations.removeItem({ tenant: alice, id, itemId: item?.id ?? '' })
        await conversations.remove({ tenant: alice, id })
        await responses.remove({ tenant: alice, id: 'r1' })
        await responses.remove({ tenant: alice, id: 'r2' })
      }
    })

    test('a forgotten tenant has nothing, and others keep theirs', async () => {
      for (let turn = 0; turn < 120; turn += 1) await calls.begin(`r${turn}`)
      const id = await calls.newConversation()
      await calls.begin('r1', { tenant: bob })
      await calls.responses.forgetTenant(nameOf(alice))

      expect(await calls.texts('r0')).toBe('unknown')
      expect(await calls.texts('r119')).toBe('unknown')
      expect(await calls.conversations.get({ tenant: alice, id })).toBeUndefined()
      expect(await calls.texts('r1', bob)).toEqual(ofTurns('r1'))
      expect(await calls.begin('r0')).toEqual({ kind: 'stored' })
    })

    test('with another secret nothing opens, and with the former one of a rotation all does', async () => {
      await calls.begin('r1')
      expect(await callsOn(under.store, { secret: 'a new secret' }).texts('r1')).toBe('unknown')

      const rotating = callsOn(under.store, { secret: 'a new secret', former: 'a secret' })
      rotating.addFormer(alice)
      expect(await rotating.texts('r1')).toEqual(ofTurns('r1'))
      expect(await rotating.follow('r1', 'r2')).toEqual({ kind: 'stored' })
      expect(await calls.texts('r2')).toEqual(ofTurns('r1', 'r2'))
    })
  })
}
