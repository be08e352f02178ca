import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ArtefactStore } from '../../../src/kvcache/artefact-store/artefact-store.ts'

export interface ArtefactStoreBed {
  readonly store: ArtefactStore
  /** Names of all stored contents. */
  names(): Promise<readonly string[]>
  close(): Promise<void>
}

const name = `ctx-${'ab12'.repeat(12)}.kv`
const signal = (): AbortSignal => AbortSignal.timeout(20_000)

async function* pieces(content: Uint8Array, size = 60_000): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < content.length; start += size) yield content.subarray(start, start + size)
}

/** The contract of ArtefactStore: run it on your own. */
export const describeArtefactStore = (title: string, make: () => Promise<ArtefactStoreBed>): void => {
  describe(title, () => {
    let bed: ArtefactStoreBed
    beforeEach(async () => {
      bed = await make()
    })
    afterEach(() => bed.close())

    const save = (content: Uint8Array, as = name) =>
      bed.store.save(as, pieces(content), { bytes: content.length, signal: signal() })
    const load = async (as = name): Promise<Buffer | undefined> => {
      const content = await bed.store.load(as, { signal: signal() })
      if (content === undefined) return undefined
      const chunks: Uint8Array[] = []
      for await (const chunk of content) chunks.push(chunk)
      return Buffer.concat(chunks)
    }

    test.each([
      { title: 'empty', bytes: 0 },
      { title: 'of one byte', bytes: 1 },
      { title: 'of many pieces', bytes: 5_000_000 },
    ])('load returns the saved content: $title', async ({ bytes }) => {
      const content = randomBytes(bytes)
      await save(content)
      expect((await load())?.equals(content)).toBe(true)
    })

    test('a name that was never saved is a miss', async () => {
      expect(await load()).toBeUndefined()
    })

    test('a removed content is a miss, and can be removed again', async () => {
      await save(randomBytes(10))
      await bed.store.remove(name, { signal: signal() })
      await bed.store.remove(name, { signal: signal() })
      expect(await load()).toBeUndefined()
      expect(await bed.names()).toEqual([])
    })

    test('contents of two names are independent', async () => {
      const other = name.replace('ab', 'cd')
      await save(Buffer.from('one'))
      await save(Buffer.from('two'), other)
      await bed.store.remove(other, { signal: signal() })
      expect([String(await load()), await load(other)]).toEqual(['one', undefined])
    })

    test('20 concurrent saves and loads do not mix', async () => {
      const contents = Array.from({ length: 20 }, () => randomBytes(100_000))
      const nameOf = (index: number): string => `ctx-${String(index).padStart(48, '0')}.kv`
      await Promise.all(contents.map((content, index) => save(content, nameOf(index))))
      const loaded = await Promise.all(contents.map((_, index) => load(nameOf(index))))
      expect(loaded.map((content, index) => content?.equals(contents[index] ?? Buffer.alloc(0)))).toEqual(
        contents.map(() => true),
      )
    })

    test('a content that breaks off is not stored', async () => {
      const broken = async function* () {
        yield randomBytes(100_000)
        throw new Error('the file of the engine is gone')
      }
      await expect(bed.store.save(name, broken(), { bytes: 200_000, signal: signal() })).rejects.toThrow()
      expect(await load()).toBeUndefined()
    })

    test('an aborted save ends, and stores nothing', async () => {
      const stop = new AbortController()
      const endless = async function* () {
        for (;;) {
          yield randomBytes(100_000)
          stop.abort()
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      await expect(bed.store.save(name, endless(), { bytes: 1_000_000_000, signal: stop.signal })).rejects.toThrow()
      expect(await load()).toBeUndefined()
    })
  })
}
