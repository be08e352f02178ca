import * as z from 'zod'
import type { TenantKey } from '../sessions/session-record.ts'
import type { ClaimSeal } from './claim-seal.ts'
import type { KvLog } from './connector-definition.ts'
import type {
  EndedTurn,
  EngineFields,
  EngineFinding,
  FinishOutcome,
  KnownArtefacts,
  KvConnector,
  KvPresence,
  KvRemoval,
  PrepareBudget,
  Prepared,
  ReleasedTurn,
  RemoveOutcome,
  StartingTurn,
} from './kv-connector.ts'

/** A turn that is ready to be forwarded. */
export interface PreparedTurn {
  readonly presence: KvPresence
  readonly fields: EngineFields
  /** Sealed; undefined: nothing has to be done when the turn ends. */
  readonly claim: string | undefined
}

const hostClaim = z.union([z.object({ notStored: z.string() }), z.object({ claim: z.unknown() })])

/** What is sealed: the connector's claim, or why nothing of the turn will be stored. */
type HostClaim = Readonly<z.infer<typeof hostClaim>>

/** A turn of a session that is about to be forwarded. */
export interface SessionTurn extends StartingTurn {
  /** Why nothing was stored of the session until now; undefined: unknown. */
  readonly kvStatus: string | undefined
}

type Sealed<Turn> = Omit<Turn, 'claim'> & { readonly claim: string }

/** Changes when payloads of an earlier version must not be read. */
const payloadVersion = 1

/**
 * A connector as the context module uses it. Faults are outcomes: nothing rejects but `remove` and `sweep`, which are
 * tried again, and `check`. Claims are sealed, and payloads carry a tag, so that a connector receives only what it
 * wrote itself.
 */
export interface KvCache {
  /** Brings the turn's KV into its pod within the budget. A fault is a miss. */
  prepare(turn: SessionTurn, budget: PrepareBudget): Promise<PreparedTurn>
  /** Fields of a turn without a session. */
  isolation(tenant: TenantKey, turn?: StartingTurn): EngineFields
  /** Fields of a request that is no turn of a session, whoever sends it. */
  readonly constants: EngineFields
  /** Stores what the turn left in its pod, or confirms that the engine did. A fault is `none`. */
  finish(turn: Sealed<EndedTurn>): Promise<FinishOutcome>
  /** Ends the claim of a turn that failed or ran elsewhere. A fault goes to the log: the claim ends with its lease. */
  release(turn: Sealed<ReleasedTurn>): Promise<void>
  /** Removes an artefact, or what pods hold of a session. @throws what the connector throws */
  remove(removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome>
  /** Removes KV that nobody remembers. @throws what the connector throws */
  sweep(artefacts: KnownArtefacts, signal: AbortSignal): Promise<void>
  /** What the operator has to know about the engine of the pod. Rejects if that cannot be found out now. */
  check(pod: string, signal: AbortSignal): Promise<readonly EngineFinding[]>
  /** Ends what the connector runs; after the last turn. */
  close(): Promise<void>
}

/** `name` is the connector's, and `pool` that of the pods that it serves. */
export const createKvCache = (
  connector: KvConnector,
  parts: { readonly name: string; readonly pool: string; readonly seal: ClaimSeal; readonly log: KvLog },
): KvCache => {
  const { seal, log } = parts
  const tag = `${payloadVersion}/${parts.name}/${parts.pool} `
  /** Undefined: another connector or pool wrote it. */
  const untagged = (payload: string | undefined): string | undefined =>
    payload?.startsWith(tag) === true ? payload.slice(tag.length) : undefined
  const isolation = (tenant: TenantKey, turn?: StartingTurn): EngineFields => connector.isolation?.(tenant, turn) ?? {}

  const sealed = ({ turnId, kvStatus }: SessionTurn, { claim, notStored }: Prepared): string | undefined => {
    if (claim !== undefined) return seal.seal(turnId, { claim } satisfies HostClaim)
    if (notStored === undefined || notStored === kvStatus) return undefined
    return seal.seal(turnId, { notStored } satisfies HostClaim)
  }

  const prepare = async (turn: SessionTurn, budget: PrepareBudget): Promise<PreparedTurn> => {
    const payload = untagged(turn.stored?.payload)
    const stored = turn.stored === undefined || payload === undefined ? undefined : { ...turn.stored, payload }
    const isForeign = turn.stored !== undefined && stored === undefined
    const starting = { ...turn, stored }
    const ready = (prepared: Prepared): PreparedTurn => {
      const { presence, fields } = prepared
      // A module may give none, or no JSON: it throws here.
      JSON.stringify(Object.entries(fields))
      const isIncompatible = presence.kind === 'miss' && presence.reason === 'nothing_stored' && isForeign
      const claim = sealed(turn, prepared)
      return { presence: isIncompatible ? { kind: 'miss', reason: 'kv_incompatible' } : presence, fields, claim }
    }
    try {
      return ready(await connector.prepare(starting, budget))
    } catch (cause) {
      const late = stored === undefined ? 'nothing_stored' : 'load_timeout'
      const presence = { kind: 'miss', reason: budget.signal.aborted ? late : 'load_failed', cause } as const
      return ready({ presence, fields: isolation(turn.tenant, starting), notStored: 'not_attached' })
    }
  }

  const open = (turn: Sealed<ReleasedTurn>): HostClaim =>
    hostClaim.safeParse(seal.open(turn.turnId, turn.claim)).data ?? { notStored: 'not_attached' }

  const finish = async (turn: Sealed<EndedTurn>): Promise<FinishOutcome> => {
    const opened = open(turn)
    if ('notStored' in opened) return { kind: 'none', reason: opened.notStored }
    if (connector.finish === undefined) return { kind: 'unchanged' }
    try {
      const outcome = await connector.finish({
        ...turn,
        claim: opened.claim,
        announce: ({ artefactId, payload }) => turn.announce({ artefactId, payload: tag + payload }),
      })
      return outcome.kind === 'stored' ? { ...outcome, payload: tag + outcome.payload } : outcome
    } catch (cause) {
      return { kind: 'none', reason: 'offload_failed', cause }
    }
  }

  const release = async (turn: Sealed<ReleasedTurn>): Promise<void> => {
    const opened = open(turn)
    if ('notStored' in opened) return
    try {
      await connector.release?.({ ...turn, claim: opened.claim })
    } catch (error) {
      log.warn('a claim on a pod was not released; it ends with its lease', { pod: turn.pod, err: error })
    }
  }

  const remove = async (removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome> => {
    const payload = untagged(removal.payload)
    const isForeign = removal.payload !== undefined && payload === undefined
    const ours: KvRemoval | undefined =
      removal.kind === 'session' ? { ...removal, payload } : payload === undefined ? undefined : { ...removal, payload }
    const outcome = (ours && (await connector.remove?.(ours, signal))) ?? { kind: 'removed' }
    return outcome.kind === 'removed' && isForeign ? { kind: 'foreign' } : outcome
  }

  return {
    prepare,
    isolation,
    constants: connector.constants ?? {},
    finish,
    release,
    remove,
    sweep: async (artefacts, signal) => connector.sweep?.(artefacts, signal),
    check: async (pod, signal) => (await connector.check?.(pod, signal)) ?? [],
    close: async () => connector.close?.(),
  }
}
