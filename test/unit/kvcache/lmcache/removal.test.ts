import { afterEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../../src/kvcache/kv-connector.ts'
import {
  newPrompt,
  newSession,
  removeArtefact,
  removeSession,
  serveTurn,
  withPayload,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheBedOptions, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'

describe('removal', () => {
  let bed: LmcacheBed
  let cache: KvCache
  const session = newSession()
  const prompt = newPrompt()
  afterEach(() => bed.close())

  /** A conversation of three turns that changed its pod twice. Resolves to its artefacts, oldest first. */
  const converse = async (options: LmcacheBedOptions): Promise<readonly KvArtefact[]> => {
    bed = await startLmcacheBed(options)
    cache = bed.connect()
    const artefacts: KvArtefact[] = []
    for (const pod of [bed.pods[0], bed.pods[1], bed.pods[0]]) {
      const text = prompt + ' And some more of it, please, at length.'.repeat(4 * artefacts.length)
      const { stored } = await serveTurn(cache, { session, pod, prompt: text, stored: artefacts.at(-1) })
      if (stored === undefined) throw new Error('a turn stored nothing')
      if (stored !== artefacts.at(-1)) artefacts.push(stored)
    }
    return artefacts
  }
  const removeAll = async (artefacts: readonly KvArtefact[]): Promise<readonly string[]> => {
    const kinds: string[] = []
    for (const [at, stored] of artefacts.entries()) {
      const remove = at === artefacts.length - 1 ? removeSession : removeArtefact
      kinds.push((await remove(cache, session, stored)).kind)
    }
    return kinds
  }
  const left = () => ({ chunks: bed.fleet.chunks(), ledger: bed.ledger.size })
  const nothing = { chunks: [], ledger: 0 }

  /** Tells the directory of every file in the store, as if both instances did. */
  const report = (kind: 'stored' | 'deleted'): Promise<void> => {
    const { directory, store } = bed.fleet
    for (const key of store.keys())
      for (const instanceId of ['instance-0', 'instance-1']) directory.report({ kind, instanceId, tier: 'l2', key })
    return directory.arrived()
  }

  test.each<{ readonly name: string; readonly lose: () => unknown }>([
    { name: 'after a restart of the coordinator', lose: () => bed.fleet.directory.forget() },
    {
      name: 'in the store where an instance that is gone wrote it, and memory has it',
      lose: () => {
        bed.fleet.pods[0].instance.restart()
        bed.fleet.absent.add('instance-0')
      },
    },
    { name: 'in the store where memory alone is listed', lose: () => report('deleted') },
    { name: 'where files of another instance are listed, which will be gone', lose: () => report('stored') },
  ])('leaves nothing $name', async ({ lose }) => {
    const artefacts = await converse({ isolation: 'tenant' })
    await lose()
    expect(await removeAll(artefacts)).toEqual(['removed', 'removed', 'removed'])
    expect(left()).toEqual(nothing)
  })

  test.each(['coordinator', 'instance-0', 'instance-1'])(
    'is busy while the %s does not answer, and succeeds afterwards',
    async (name) => {
      const artefacts = await converse({ isolation: 'tenant' })
      bed.fleet.onCall(({ server }) => (server === name ? 'cut' : undefined))
      expect(await removeAll(artefacts)).toContain('busy')
      bed.fleet.onCall(() => undefined)
      await eventually(async () => (await removeAll(artefacts)).every((kind) => kind === 'removed'))
      expect(left()).toEqual(nothing)
    },
  )

  test('is busy while no instance is registered, and succeeds afterwards', async () => {
    const artefacts = await converse({ isolation: 'tenant' })
    for (const { instance } of bed.fleet.pods) bed.fleet.absent.add(instance.id)
    expect(await removeAll(artefacts.slice(-1))).toEqual(['busy'])
    bed.fleet.absent.clear()
    expect(await removeAll(artefacts)).not.toContain('busy')
    expect(left()).toEqual(nothing)
  })

  test.each(['read', 'written'])(
    'leaves a chunk that is being %s to its turn, and succeeds afterwards',
    async (use) => {
      const artefacts = await converse({ isolation: 'tenant' })
      const { inUse, memory } = bed.fleet.pods[0].instance
      const keys = bed.fleet.store.keys()
      for (const { chunk_hash_hex: name } of keys) inUse.add(name)
      if (use === 'written') bed.fleet.empty()
      else expect(memory.keys()).not.toEqual([])
      const kept = memory.keys()
      expect(await removeAll(artefacts.slice(-1))).toEqual(['busy'])
      expect(memory.keys()).toEqual(kept)
      inUse.clear()
      if (use === 'written') bed.fleet.pods[0].instance.write(keys)
      await eventually(async () => (await removeAll(artefacts)).every((kind) => kind === 'removed'))
      expect(left()).toEqual(nothing)
    },
  )

  test('also removes chunks that an instance receives meanwhile', async () => {
    const artefacts = await converse({ isolation: 'tenant' })
    const keys = bed.fleet.store.keys()
    let isFirst = true
    bed.fleet.onCall(({ path, method }) => {
      if (method !== 'DELETE' || path !== '/cache/objects' || !isFirst) return undefined
      isFirst = false
      bed.fleet.pods[1].instance.write(keys)
      return undefined
    })
    expect(await removeAll(artefacts)).not.toContain('busy')
    expect(left()).toEqual(nothing)
  })

  test('asks only the instances that hold something', async () => {
    bed = await startLmcacheBed({ isolation: 'tenant', pods: 4 })
    cache = bed.connect()
    const { stored } = await serveTurn(cache, { session, pod: bed.pods[1], prompt })
    const before = bed.fleet.calls.length
    expect(await removeAll(stored === undefined ? [] : [stored])).toEqual(['removed'])
    const asked = bed.fleet.calls
      .slice(before)
      .filter(({ method, path }) => `${method} ${path}` === 'DELETE /cache/objects')
    expect(new Set(asked.map(({ server }) => server))).toEqual(new Set(['instance-1']))
    expect(left()).toEqual(nothing)
  })

  test.each([
    { name: 'that cannot be read', payload: '{"file":"x"}' },
    { name: 'that another connector wrote', payload: undefined },
  ])('of a payload $name is foreign', async ({ payload }) => {
    const [stored] = await converse({ isolation: 'session' })
    if (stored === undefined) throw new Error('a turn stored nothing')
    const other = payload === undefined ? { ...stored, payload: 'x' } : withPayload(stored, payload)
    expect(await removeSession(cache, session, other)).toEqual({ kind: 'foreign' })
  })
})
