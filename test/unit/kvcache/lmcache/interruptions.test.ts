import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvRemoval } from '../../../../src/kvcache/kv-connector.ts'
import type { KvEvents } from '../../../../src/kvcache/kv-events/kv-events.ts'
import { finish } from '../../../../src/kvcache/lmcache/finish.ts'
import { prepare } from '../../../../src/kvcache/lmcache/prepare.ts'
import { release, remove } from '../../../../src/kvcache/lmcache/remove.ts'
import { parseStoredPrefix } from '../../../../src/kvcache/lmcache/stored-prefix.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  payloadOf,
  serveTurn,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheFleet, startLmcacheFleet } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'
import { type InterruptibleParts, type Interruption, interruptibleParts } from './interruptible-parts.ts'

/** More than any of these operations calls. */
const mostCalls = 10
/** More at once would run into the time limits of calls on a busy machine. */
const atATime = 6
const interruptions = Array.from({ length: mostCalls }, (_none, index) => index + 1).flatMap((at) => [
  { at, how: 'before' as const },
  { at, how: 'after' as const },
])

describe('interrupted at any of its calls and then repeated,', () => {
  let fleet: LmcacheFleet
  let bed: LmcacheBed
  let cache: KvCache
  let events: KvEvents
  const prompt = newPrompt()
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation: 'tenant' })
    bed = await fleet.bed()
    cache = bed.connect()
    events = bed.events
  })
  afterAll(async () => {
    await bed.close()
    await fleet.close()
  })

  /** Two sessions of one tenant of its own, that share the beginning of their prompts. */
  const twoSessions = async (tenant: string) => {
    const serve = async (addition: string) => {
      const session = newSession(tenant)
      const text = `${prompt}${addition.repeat(8)}`
      const turn = await serveTurn(cache, { session, pod: bed.pods[0], prompt: text })
      if (turn.stored === undefined) throw new Error('a turn stored nothing')
      const payload = payloadOf(turn.stored)
      const stored = parseStoredPrefix(payload)
      if (stored === undefined) throw new Error('a payload cannot be read')
      return { removal: { kind: 'session', session: session.key, payload } satisfies KvRemoval, stored }
    }
    return { doomed: await serve(' I ask one thing.'), fellow: await serve(' I ask another thing.') }
  }
  const hashesOf = (salt: string): readonly string[] =>
    bed.fleet
      .chunks(salt)
      .map((name) => name.split('@')[3] ?? '')
      .sort()

  /** Runs an operation with every interruption, each on sessions of its own, a few at once. */
  const withEach = async (run: (parts: InterruptibleParts, tenant: string) => Promise<readonly unknown[]>) => {
    const runOne = async ({ at, how }: Interruption) => {
      const parts = interruptibleParts({ bed, events }, { at, how })
      const result = await run(parts, `${how} ${at}`)
      await parts.close()
      return { name: `${how} ${at}`, result, calls: parts.calls() }
    }
    const results: Awaited<ReturnType<typeof runOne>>[] = []
    for (let from = 0; from < interruptions.length; from += atATime) {
      results.push(...(await Promise.all(interruptions.slice(from, from + atATime).map(runOne))))
    }
    return {
      names: results.map(({ name, result }) => [name, ...result]),
      wasInterrupted: results.filter(({ calls }, index) => calls >= (interruptions[index]?.at ?? 0)).length,
      mostCalls: Math.max(...results.map(({ calls }) => calls)),
    }
  }

  test('a removal removes all of its session and nothing of another', async () => {
    const outcome = await withEach(async (parts, tenant) => {
      const { doomed, fellow } = await twoSessions(`removal ${tenant}`)
      await remove(parts, doomed.removal, anySignal())
      const whole = interruptibleParts({ bed, events })
      await eventually(async () => (await remove(whole, doomed.removal, anySignal())).kind === 'removed')
      const kept = hashesOf(fellow.stored.salt).join() === [...fellow.stored.chunks].sort().join()
      await eventually(async () => (await remove(whole, fellow.removal, anySignal())).kind === 'removed')
      await whole.close()
      return [kept, hashesOf(fellow.stored.salt).length]
    })
    expect(outcome.names).toEqual(interruptions.map(({ at, how }) => [`${how} ${at}`, true, 0]))
    expect(outcome.wasInterrupted).toBeGreaterThanOrEqual(2 * 5)
    expect(outcome.mostCalls).toBeLessThan(mostCalls)
    expect(bed.ledger.size).toBe(0)
  })

  test('a finish leaves nothing that the removal of what it announced does not remove', async () => {
    const outcome = await withEach(async (parts, name) => {
      const [session, text] = [newSession(`finish ${name}`), newPrompt()]
      const whole = interruptibleParts({ bed, events })
      const turn = turnOf(session, bed.pods[0])
      const { fields, claim } = await prepare(whole, turn, anySignal())
      const { promptTokens, outputTokens } = await bed.pods[0].run({ prompt: text, fields })
      const salt = fields['cache_salt'] as string
      await eventually(async () => hashesOf(salt).length === Math.floor(text.length / 64))
      const announced: string[] = []
      const announce = async ({ payload }: { readonly payload: string }): Promise<void> => {
        announced.push(payload)
      }
      const totalTokens = promptTokens + outputTokens
      const ended = { ...turn, createdAtMs: 0, claim, totalTokens, promptTokens, announce, signal: anySignal() }
      // Its host makes an outcome of what it throws.
      await finish(parts, ended).catch(() => {})
      for (const payload of announced) {
        const removal = { kind: 'session', session: session.key, payload } as const
        await eventually(async () => (await remove(whole, removal, anySignal())).kind === 'removed')
      }
      // What was not announced has no name yet: its turn is released instead.
      if (announced.length === 0) await release(whole, { ...turn, claim, signal: anySignal() })
      await whole.close()
      return [hashesOf(salt).length]
    })
    expect(outcome.names).toEqual(interruptions.map(({ at, how }) => [`${how} ${at}`, 0]))
    expect(outcome.wasInterrupted).toBeGreaterThanOrEqual(2 * 5)
    expect(bed.ledger.size).toBe(0)
  })
})
