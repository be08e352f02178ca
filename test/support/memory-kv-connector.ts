import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type {
  EndedTurn,
  FinishOutcome,
  KvArtefact,
  KvConnector,
  KvPresence,
  KvTurn,
  PrepareBudget,
  StartingTurn,
} from '../../src/kvcache/kv-connector.ts'
import type { SessionKey } from '../../src/sessions/session-record.ts'
import { createLatch, type Latch } from './latch.ts'
import type { MemoryFleet } from './memory-fleet.ts'

/** What a test can make go wrong. Every method holds until it is called again. */
export interface KvFaults {
  /** Loads wait, and go on when called with `false`. */
  holdLoads(isHeld: boolean): void
  /** Loads, or offloads, are refused. */
  refuse(operation: 'load' | 'offload', isRefused: boolean): void
  /** Removals find the session in use. */
  keepBusy(isBusy: boolean): void
  /** Removals find payloads of another connector. */
  keepForeign(isForeign: boolean): void
  /** Every call of an operation waits for `action` first, and fails when that does: what a connector must never do. */
  before(operation: 'prepare' | 'remove', action: () => unknown): void
}

/** What a test can see of it. */
export interface MemoryKvConnector extends Required<Omit<KvConnector, 'constants'>> {
  readonly faults: KvFaults
  /** Turns that hold a claim. */
  claims(): readonly KvTurn[]
  /** Loads from the store that were begun. */
  loads(): number
  /** How often orphans were looked for. */
  sweeps(): number
}

/** Claim of a turn that found no room. */
const noClaim = ''

/**
 * A KvConnector over a {@link MemoryFleet}, in one process. It keeps what the port promises: one load for turns that
 * come together, a session's last turn on a pod stores for all, but nothing unannounced, and nothing in use is removed.
 */
export const createMemoryKvConnector = (options: {
  readonly fleet: MemoryFleet
  /** Sessions that a pod keeps apart at a time. */
  readonly sessionsPerPod: number
  readonly bytesPerToken: number
  /** Called when a pod may have room for another session. Default: nobody is told. */
  readonly roomAt?: (pod: string) => void
}): MemoryKvConnector => {
  const { fleet, roomAt = () => {} } = options
  const claims = new Map<string, KvTurn>()
  const loading = new Map<
    string,
    { readonly kv: KvArtefact; readonly session: SessionKey; readonly end: Promise<KvPresence> }
  >()
  let gate: Latch | undefined
  const refused = new Set<'load' | 'offload'>()
  const actions = new Map<'prepare' | 'remove', () => unknown>()
  let isKeptBusy = false
  let isKeptForeign = false
  let loads = 0
  let sweeps = 0

  const release = (pod: string, claim: unknown): void => {
    if (claims.delete(String(claim))) roomAt(pod)
  }

  const turnsOf = (session: SessionKey): readonly KvTurn[] =>
    [...claims.values()].filter((turn) => turn.session === session)

  const hasRoom = (turn: KvTurn): boolean => {
    const here = [...claims.values(), turn].filter(({ pod }) => pod === turn.pod)
    return new Set(here.map(({ session }) => session)).size <= options.sessionsPerPod
  }

  const load = async (turn: KvTurn, kv: KvArtefact): Promise<KvPresence> => {
    const startedMs = performance.now()
    loads += 1
    await gate?.opened
    if (refused.has('load')) throw new Error('the engine refused')
    const artefact = fleet.stored(kv.payload)
    if (artefact === undefined) return { kind: 'miss', reason: 'kv_missing', gone: true }
    if (artefact.tokens > fleet.held(turn.pod, turn.session)) fleet.hold(turn.pod, artefact)
    return { kind: 'hit', tier: 'store', tokens: artefact.tokens, loadMs: performance.now() - startedMs }
  }

  /** Turns that come together share one load. It goes on when a turn has stopped waiting for it. */
  const loadOnce = (turn: KvTurn, kv: KvArtefact): Promise<KvPresence> => {
    const name = `${turn.pod} ${kv.artefactId}`
    const shared = loading.get(name)
    if (shared !== undefined) return shared.end
    const end = load(turn, kv).finally(() => loading.delete(name))
    loading.set(name, { kv, session: turn.session, end })
    return end
  }

  const presenceOf = async (turn: StartingTurn, { signal, refuseLoad }: PrepareBudget): Promise<KvPresence> => {
    const tokens = fleet.held(turn.pod, turn.session)
    if (tokens > 0) return { kind: 'hit', tier: 'gpu', tokens }
    if (turn.stored === undefined) return { kind: 'miss', reason: 'nothing_stored' }
    const refused = await refuseLoad?.()
    if (refused !== undefined) return { kind: 'miss', reason: refused }
    return Promise.race([loadOnce(turn, turn.stored), whenFired(signal)])
  }

  const prepare: KvConnector['prepare'] = async (turn, { signal, refuseLoad }) => {
    await actions.get('prepare')?.()
    if (!hasRoom(turn)) return { presence: { kind: 'miss', reason: 'no_slot' }, fields: {}, claim: noClaim }
    const claim = randomUUID()
    claims.set(claim, turn)
    try {
      return { presence: await presenceOf(turn, { signal, refuseLoad }), fields: { kv_session: turn.session }, claim }
    } catch (cause) {
      const reason = signal.aborted ? 'load_timeout' : 'load_failed'
      return { presence: { kind: 'miss', reason, cause }, fields: { kv_session: turn.session }, claim }
    }
  }

  const finish = async ({ claim, announce, signal, ...turn }: EndedTurn): Promise<FinishOutcome> => {
    release(turn.pod, claim)
    if (claim === noClaim) return { kind: 'none', reason: 'no_slot' }
    if (turnsOf(turn.session).some(({ pod }) => pod === turn.pod)) return { kind: 'unchanged' }
    const tokens = fleet.held(turn.pod, turn.session)
    if (tokens === 0) return { kind: 'none', reason: 'not_verified' }
    if (refused.has('offload')) throw new Error('the engine refused')
    const artefactId = randomUUID()
    await announce({ artefactId, payload: artefactId })
    signal.throwIfAborted()
    fleet.store(artefactId, { session: turn.session, tokens })
    return { kind: 'stored', artefactId, payload: artefactId, tokens, bytes: tokens * options.bytesPerToken }
  }

  return {
    faults: {
      holdLoads: (isHeld) => {
        gate?.open()
        gate = isHeld ? createLatch() : undefined
      },
      refuse: (operation, isRefused) => {
        if (isRefused) refused.add(operation)
        else refused.delete(operation)
      },
      keepBusy: (isBusy) => {
        isKeptBusy = isBusy
      },
      keepForeign: (isForeign) => {
        isKeptForeign = isForeign
      },
      before: (operation, action) => {
        actions.set(operation, action)
      },
    },
    claims: () => [...claims.values()],
    loads: () => loads,
    sweeps: () => sweeps,
    prepare,
    isolation: () => ({}),
    finish,
    release: async ({ pod, claim }) => release(pod, claim),
    remove: async (removal) => {
      await actions.get('remove')?.()
      const underWay = [...loading.values()]
      const isInUse =
        removal.kind === 'session'
          ? [...turnsOf(removal.session), ...underWay].some(({ session }) => session === removal.session)
          : underWay.some(({ kv }) => kv.payload === removal.payload)
      if (isKeptForeign) return { kind: 'foreign' }
      if (isKeptBusy || isInUse) return { kind: 'busy', reason: 'in_use' }
      if (removal.kind === 'session') fleet.erase(removal.session)
      if (removal.payload !== undefined) fleet.unstore(removal.payload)
      return { kind: 'removed' }
    },
    sweep: async (artefacts) => {
      sweeps += 1
      const present = fleet.artefactIds()
      const known = await artefacts.known(present)
      const orphans = present.filter((artefactId) => !known.has(artefactId))
      for (const artefactId of orphans) fleet.unstore(artefactId)
    },
    check: async () => [],
    close: async () => {},
  }
}

const whenFired = async (signal: AbortSignal): Promise<never> => {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}
