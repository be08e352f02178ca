import { mkdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { fileOf, isUnfinished } from '../../../../src/kvcache/llamacpp-slots/artefact.ts'
import { createLlamacppSlotsConnector } from '../../../../src/kvcache/llamacpp-slots/connector.ts'
import { createFolderOwner, type FolderOwner, markerFile } from '../../../../src/kvcache/llamacpp-slots/folder-owner.ts'
import { createWarnings } from '../../../../src/telemetry/warnings.ts'
import { connectorParts } from '../../../support/connector-parts.ts'

let directory: string
const owners: FolderOwner[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'folder-'))
})
afterEach(async () => {
  for (const owner of owners.splice(0)) await owner.close()
  await rm(directory, { recursive: true, force: true })
})

const partsOf = (store: string | (() => string), staleAfterMs: number) =>
  connectorParts({ identity: { name: async () => (typeof store === 'string' ? store : store()), staleAfterMs } })

/** A gateway of the store `store`. */
const gateway = (store: string | (() => string), staleAfterMs = 600_000) => {
  const warnings = createWarnings({ warn: () => {}, info: () => {} })
  const owner = createFolderOwner(directory, { ...partsOf(store, staleAfterMs), warnings })
  owners.push(owner)
  return { owner, warned: () => warnings.list().map(({ kind }) => kind) }
}

/** As if nobody had touched the marker for so long. */
const age = (milliseconds: number) =>
  utimes(join(directory, markerFile), new Date(), new Date(Date.now() - milliseconds))

describe('a folder', () => {
  test('belongs to the first store, and to all of its gateways', async () => {
    const answers = [gateway('a'), gateway('a')].map(({ owner }) => owner.isOurs())
    expect(await Promise.all(answers)).toEqual([true, true])
  })

  test('is left alone by the gateway of another store, which says so', async () => {
    await gateway('a').owner.isOurs()
    const other = gateway('b')
    expect([await other.owner.isOurs(), await other.owner.isOurs()]).toEqual([false, false])
    expect(other.warned()).toEqual(['kv_folder_foreign'])
    expect(await readFile(join(directory, markerFile), 'utf8')).toContain('"a"')
  })

  test.each([
    { name: 'younger than its store allows', ageMs: 5_000, isOurs: false },
    { name: 'older', ageMs: 8_000, isOurs: true },
  ])('whose mark is $name can be taken, and is foreign to who lost it: $isOurs', async ({ ageMs, isOurs }) => {
    await gateway('a', 7_000).owner.isOurs()
    await age(ageMs)
    expect(await gateway('b').owner.isOurs()).toBe(isOurs)
    expect(await gateway('a', 7_000).owner.isOurs()).toBe(!isOurs)
  })

  test('goes over to another name of its own store', async () => {
    let name = 'a'
    const running = gateway(() => name)
    const starting = gateway('b')
    expect([await running.owner.isOurs(), await starting.owner.isOurs()]).toEqual([true, false])
    name = 'b'
    expect([await running.owner.isStillOurs(), await starting.owner.isStillOurs()]).toEqual([true, true])
    expect(await gateway('a').owner.isOurs()).toBe(false)
  })

  test.each([
    { name: 'that ends with its process is free at once', staleAfterMs: 7_000, files: 0 },
    { name: 'in Redis stays marked', staleAfterMs: 600_000, files: 1 },
  ])('of a store $name', async ({ staleAfterMs, files }) => {
    const { owner } = gateway('a', staleAfterMs)
    await owner.isOurs()
    await owner.close()
    expect(await readdir(directory)).toHaveLength(files)
  })

  test('that is not there is nobody’s, and a warning until it is there', async () => {
    await rm(directory, { recursive: true })
    const { owner, warned } = gateway('a')
    expect([await owner.isOurs(), warned()]).toEqual([true, ['kv_folder_unavailable']])
    await mkdir(directory)
    expect([await owner.isStillOurs(), warned()]).toEqual([true, []])
  })

  test('with a marker that cannot be read is taken', async () => {
    await writeFile(join(directory, markerFile), 'not JSON')
    expect(await gateway('a').owner.isOurs()).toBe(true)
  })
})

test('a marker that cannot be written whole leaves no more than an unfinished file', async () => {
  const identity = {
    name: async () => 'a',
    get staleAfterMs() {
      mkdirSync(join(directory, markerFile, 'full'), { recursive: true })
      return 600_000
    },
  }
  owners.push(createFolderOwner(directory, connectorParts({ identity })))
  await owners[0]?.isOurs()
  expect((await readdir(directory)).map(isUnfinished)).toEqual([false, true])
})

test('the owner of a folder is unknown while the store does not answer', async () => {
  const identity = { name: () => Promise.reject(new Error('away')), staleAfterMs: 7_000 }
  const away = createFolderOwner(directory, connectorParts({ identity }))
  owners.push(away)
  await expect(away.isOurs()).rejects.toThrow('away')
  expect(await readdir(directory)).toEqual([])
})

test('a sweep deletes nothing in a folder that another store took while the process stood still', async () => {
  const connector = createLlamacppSlotsConnector({ directory, callTimeoutMs: 1_000, minTokens: 1 }, partsOf('a', 7_000))
  const file = fileOf('ab'.repeat(20))
  await writeFile(join(directory, file), 'of the other store')
  const known = async (): Promise<ReadonlySet<string>> => {
    await age(8_000)
    expect(await gateway('b', 7_000).owner.isOurs()).toBe(true)
    return new Set()
  }
  await connector.sweep({ known, forget: async () => {} }, new AbortController().signal)
  await connector.close()
  expect(await readdir(directory)).toContain(file)
})
