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

export type KvCache = ReturnType<typeof createKvCache>

/** Changes when payloads of an earlier version must not be read. */
const payloadVersion = 1

/**
 * A connector as the context module uses it. Faults are outcomes: nothing rejects but `remove` and `sweep`, which are
 * tried again, and `check`. Claims are sealed, and payloads carry a tag, so that a connector receives only what it
 * wrote itself. `name` is the connector's, and `pool` that of the pods that it serves.
 */
export const createKvCache = (
  connector: KvConnector,
  parts: { readonly name: string; readonly pool: string; readonly seal: ClaimSeal; readonly log: KvLog },
) => {
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
    /** Fields of a turn without a session. */
    isolation,
    /** Fields of a request that is no turn of a session, whoever sends it. */
    constants: connector.constants ?? {},
    finish,
    release,
    remove,
    sweep: async (artefacts: KnownArtefacts, signal: AbortSignal): Promise<void> =>
      connector.sweep?.(artefacts, signal),
    /** What the operator has to know about the engine of the pod. Rejects if that cannot be found out now. */
    check: async (pod: string, signal: AbortSignal): Promise<readonly EngineFinding[]> =>
      (await connector.check?.(pod, signal)) ?? [],
    close: async (): Promise<void> => connector.close?.(),
  }
}
