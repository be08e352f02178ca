import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { encode } from '@msgpack/msgpack'
import { decodeEvents } from '../../../../src/kvcache/kv-events/decode-events.ts'
import { allSlices } from '../../../support/all-slices.ts'
import { clearedEvent, removedEvent, storedEvent } from '../../../support/kv-event-messages.ts'

const batch = (...events: readonly unknown[]): Uint8Array => encode([1.5, events, 0], { useBigInt64: true })
/** What {@link twoBlocks} are read as. */
const reported = (part: object = {}): unknown => ({
  kind: 'reported',
  turnId: 't',
  after: undefined,
  hashes: [1, 2],
  tokens: Uint32Array.of(10, 11, 12, 13),
  blockTokens: 2,
  ...part,
})
const twoBlocks = { hashes: [1, 2], tokens: [10, 11, 12, 13], salt: 's', turnId: 't' }

describe('decodeEvents', () => {
  const removed = (...hashes: readonly unknown[]): unknown => ({ kind: 'removed', hashes })
  const adapters = { lora_name: 'l', lora_id: 4, extra_keys: [['l', 's'], ['l']] }
  const imageBehind = { extra_keys: [['s'], [['image', 0]]] }
  const imageAtRoot = { extra_keys: [[['image', 0], 's'], null] }
  const embeddingsAtRoot = { extra_keys: [['s', 'digest'], null] }
  const image = { extra_keys: [[['image', 0]]] }
  const nothing = { hashes: [], tokens: new Uint32Array() }
  const behind = { hashes: [3], tokens: [1, 2], parent: 2, turnId: 't' }
  test.each<[string, unknown, unknown]>([
    ['blocks that begin a chain', storedEvent(twoBlocks), reported()],
    [
      'a block behind another one',
      storedEvent(behind),
      reported({ after: 2, hashes: [3], tokens: Uint32Array.of(1, 2) }),
    ],
    ['hashes of 64 bits', removedEvent([0xffff_ffff_ffff_fffen, 7]), removed(0xffff_ffff_ffff_fffen, 7)],
    ['hashes as bytes', removedEvent([Uint8Array.of(65, 255)]), removed('A\u00ff')],
    ['a chain without salt', storedEvent({ ...twoBlocks, salt: undefined }), reported()],
    ['an adapter, named in every block before the salt', storedEvent({ ...twoBlocks, fields: adapters }), reported()],
    [
      'blocks up to the first one with an image',
      storedEvent({ ...twoBlocks, fields: imageBehind }),
      reported({ hashes: [1], tokens: Uint32Array.of(10, 11) }),
    ],
    ['no block before an image', storedEvent({ ...twoBlocks, fields: imageAtRoot }), reported(nothing)],
    ['no block before embeddings', storedEvent({ ...twoBlocks, fields: embeddingsAtRoot }), reported(nothing)],
    [
      'no block of an image behind a known block',
      storedEvent({ ...behind, fields: image }),
      reported({ ...nothing, after: 2 }),
    ],
    ['no tier, no group', { type: 'BlockRemoved', block_hashes: [1] }, removed(1)],
    ['everything cleared', clearedEvent, { kind: 'cleared' }],
    ['fields it does not know', removedEvent([1], { colour: 'blue' }), removed(1)],
  ])('reads %s', (_name, event, expected) => {
    expect(allSlices(decodeEvents(batch(event)))).toEqual([expected])
  })

  test.each<{ readonly name: string; readonly event: unknown }>([
    { name: 'a type it does not know', event: { type: 'BlockPolished', block_hashes: 'none' } },
    { name: 'memory beside the engine', event: storedEvent({ ...twoBlocks, fields: { medium: 'CPU' } }) },
    { name: 'removal from a store', event: removedEvent([1], { medium: 'STORAGE' }) },
    { name: 'another cache group', event: storedEvent({ ...twoBlocks, fields: { group_idx: 1 } }) },
    { name: 'removal from another cache group', event: removedEvent([1], { group_idx: 2 }) },
    { name: 'blocks elsewhere', event: storedEvent({ ...twoBlocks, fields: { locality: 'REMOTE' } }) },
    { name: 'content that takes little memory', event: { type: 'BlockPolished', junk: Array(10_000).fill([]) } },
    { name: 'blocks with gaps in between', event: storedEvent({ ...twoBlocks, fields: { block_hashes: [1] } }) },
    { name: 'a request without session', event: storedEvent({ ...twoBlocks, turnId: undefined }) },
    { name: 'a session id that is too long', event: storedEvent({ ...twoBlocks, turnId: 't'.repeat(65) }) },
    { name: 'keys of blocks that are missing', event: storedEvent({ ...twoBlocks, fields: { extra_keys: null } }) },
  ])('ignores $name', ({ event }) => {
    expect(allSlices(decodeEvents(batch(event, clearedEvent)))).toEqual([{ kind: 'cleared' }])
  })

  test.each<{ readonly name: string; readonly bytes: Uint8Array }>([
    { name: 'nothing', bytes: new Uint8Array() },
    { name: 'bytes that are no msgpack', bytes: Uint8Array.of(0xc1, 0xc1) },
    { name: 'a batch that breaks off', bytes: batch(storedEvent(twoBlocks)).slice(0, -3) },
    { name: 'a batch of more than one value', bytes: Uint8Array.of(...batch(), 0) },
    { name: 'an extension', bytes: Uint8Array.of(0x92, 0xd6, 0xff, 0, 0, 0, 0, 0x90) },
    { name: 'a list longer than the message', bytes: Uint8Array.of(0xdd, 0x01, 0xff, 0xff, 0xff) },
    { name: 'many lists', bytes: batch({ type: 'BlockPolished', junk: Array(100_000).fill([]) }) },
    { name: 'many maps', bytes: batch({ type: 'BlockPolished', junk: Array(100_000).fill({}) }) },
    {
      name: 'many pieces of bytes',
      bytes: batch({ type: 'BlockPolished', junk: Array(100_000).fill(new Uint8Array()) }),
    },
    { name: 'many numbers', bytes: batch({ type: 'BlockPolished', junk: Array(1_400_000).fill(0) }) },
    { name: 'many large numbers', bytes: batch({ type: 'BlockPolished', junk: Array(500_000).fill(1.5) }) },
    { name: 'a long text', bytes: batch({ type: 'BlockPolished', junk: 'x'.repeat(11_000_000) }) },
    { name: 'a map', bytes: encode({ events: [] }) },
    { name: 'no list of events', bytes: encode([1.5, 'events']) },
    { name: 'an event that is a number', bytes: batch(7) },
    { name: 'an event without a type', bytes: batch({ block_hashes: [1] }) },
    { name: 'an event as a list', bytes: batch(['BlockRemoved', [1]]) },
    { name: 'hashes that are none', bytes: batch(removedEvent([1], { block_hashes: [1.5] })) },
    { name: 'a hash of 65 bytes', bytes: batch(removedEvent([new Uint8Array(65)])) },
    { name: 'no hashes', bytes: batch(removedEvent([1], { block_hashes: null })) },
    {
      name: 'a parent that is no hash',
      bytes: batch(storedEvent({ ...twoBlocks, fields: { parent_block_hash: {} } })),
    },
    ...[-1, 2 ** 32, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n << 40n, [1]].map((token) => ({
      name: `${inspect(token)} as a token`,
      bytes: batch(storedEvent({ ...twoBlocks, fields: { token_ids: [10, 11, 12, token] } })),
    })),
    { name: 'tokens that are no list', bytes: batch(storedEvent({ ...twoBlocks, fields: { token_ids: { 0: 1 } } })) },
    { name: 'blocks of no tokens', bytes: batch(storedEvent({ ...twoBlocks, fields: { block_size: 0 } })) },
  ])('refuses $name', ({ bytes }) => {
    expect(allSlices(decodeEvents(bytes))).toBeUndefined()
  })
})
