import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'

/** What one gateway does with one artefact or one sweep, from its beginning to its end. */
type Life =
  | { readonly kind: 'artefact'; readonly chunks: readonly string[]; readonly more: readonly string[] }
  | { readonly kind: 'sweep'; readonly chunks: readonly string[] }

const chunks = fc.uniqueArray(fc.constantFrom('c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'), { minLength: 1 })
const life = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('artefact' as const), chunks, more: chunks }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const), chunks }) },
) satisfies fc.Arbitrary<Life>
const lives = fc.array(life, { minLength: 2, maxLength: 12 })

/** The engines and the store, as the gateways believe them to be. Notes what must never happen. */
class World {
  readonly #needed = new Map<string, number>()
  readonly #going = new Map<string, number>()
  readonly faults: string[] = []

  need(needed: readonly string[]): void {
    for (const chunk of needed) {
      if (this.#count(this.#going, chunk) > 0) this.faults.push(`${chunk} is held while it is being deleted`)
      this.#needed.set(chunk, this.#count(this.#needed, chunk) + 1)
    }
  }

  drop(needed: readonly string[]): void {
    for (const chunk of needed) this.#needed.set(chunk, this.#count(this.#needed, chunk) - 1)
  }

  beginDeleting(unheld: readonly string[]): void {
    for (const chunk of unheld) {
      if (this.#count(this.#needed, chunk) > 0) this.faults.push(`${chunk} is deleted while it is held`)
      this.#going.set(chunk, this.#count(this.#going, chunk) + 1)
    }
  }

  endDeleting(unheld: readonly string[]): void {
    for (const chunk of unheld) this.#going.set(chunk, this.#count(this.#going, chunk) - 1)
  }

  #count(counts: ReadonlyMap<string, number>, chunk: string): number {
    return counts.get(chunk) ?? 0
  }
}

const salt = 's'

const holdAtLast = async (ledger: ChunkLedger, name: string, wanted: readonly string[]): Promise<void> => {
  while ((await ledger.hold({ salt, name, chunks: wanted })) === 'being-deleted');
}

const live = async (ledger: ChunkLedger, world: World, name: string, life: Life): Promise<void> => {
  if (life.kind === 'sweep') {
    const unheld = await ledger.claimUnheld({ salt, name, chunks: life.chunks })
    world.beginDeleting(unheld)
    await ledger.unsettled(1)
    world.endDeleting(unheld)
    return await ledger.deleted({ salt, name })
  }
  for (const wanted of [life.chunks, life.more]) {
    await holdAtLast(ledger, name, wanted)
    world.need(wanted)
  }
  await ledger.unsettled(1)
  for (const wanted of [life.chunks, life.more]) world.drop(wanted)
  const [first, second] = await Promise.all([ledger.release({ salt, name }), ledger.release({ salt, name })])
  if (first.unheld.length !== second.unheld.length) world.faults.push('two releases answered differently')
  world.beginDeleting(first.unheld)
  await ledger.unsettled(1)
  world.endDeleting(first.unheld)
  return await ledger.deleted({ salt, name })
}

/** Gateways that work at the same time, each through a client of its own. */
export const describeLives = (
  adapter: string,
  make: () => { readonly ledgers: readonly ChunkLedger[]; readonly size: () => Promise<number> },
  numRuns: number,
): void => {
  describe(`gateways that share a ledger in ${adapter}`, () => {
    test('never delete what one of them holds, nor hold what one of them deletes', async () => {
      const property = fc.asyncProperty(lives, async (each) => {
        const { ledgers, size } = make()
        const world = new World()
        const [first] = ledgers
        const clientOf = (index: number) => ledgers[index % ledgers.length] ?? first
        await Promise.all(
          each.map(async (life, index) => {
            const client = clientOf(index)
            if (client !== undefined) await live(client, world, `name${index}`, life)
          }),
        )
        expect(world.faults).toEqual([])
        expect(await size()).toBe(0)
      })
      await fc.assert(property, { numRuns })
    }, 60_000)
  })
}
