import { inspect } from 'node:util'
import { afterEach, beforeEach } from '@jest/globals'
import type { KvCache, PreparedTurn, SessionTurn } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  type KvTestBed,
  newSession,
  type ServedTurn,
  serveTurn,
  type TestSession,
  turnOf,
} from './kv-test-bed.ts'

/** What a test of a connector works with: a bed, a gateway and a session of its own. */
export interface KvKit<Bed extends KvTestBed> {
  bed: Bed
  /** A test may connect another one. */
  cache: KvCache
  first: Bed['pods'][0]
  second: Bed['pods'][1]
  session: TestSession
  prompt: string
  /** Serves a turn of the session. Default text: the prompt. */
  readonly serve: (pod: Bed['pods'][0], stored?: KvArtefact, text?: string) => Promise<ServedTurn>
  readonly prepare: (
    pod: { address: string },
    stored?: KvArtefact,
    signal?: AbortSignal,
  ) => Promise<PreparedTurn & { readonly turn: SessionTurn }>
  /** Serves the first turn on the first pod. */
  readonly begin: () => Promise<KvArtefact>
}

/** Makes a kit before each test of the suite, and closes its bed afterwards. */
export const useKvBed = <Bed extends KvTestBed>(make: () => Promise<Bed>): KvKit<Bed> => {
  const kit = {
    serve: (pod, stored, text = kit.prompt) =>
      serveTurn(kit.cache, { session: kit.session, pod, prompt: text, stored }),
    prepare: async (pod, stored, signal = anySignal()) => {
      const turn = turnOf(kit.session, pod, { stored })
      return { turn, ...(await kit.cache.prepare(turn, { signal, placeSignal: anySignal() })) }
    },
    begin: async () => {
      const { stored, finished } = await kit.serve(kit.first)
      if (stored === undefined) throw new Error(`the first turn stored nothing: ${inspect(finished)}`)
      return stored
    },
  } as KvKit<Bed>
  beforeEach(async () => {
    const bed = await make()
    const [first, second] = bed.pods
    const cache = await bed.connect()
    Object.assign(kit, { bed, cache, first, second, session: newSession(), prompt: bed.newPrompt() })
  })
  afterEach(() => kit.bed.close())
  return kit
}
