import { type AttachOutcome, type KvConnector as OldConnector, settledClaim } from './kv-connector.ts'
import type { KvConnector, KvPresence } from './kv-port.ts'

export const adaptConnector = (old: OldConnector & { close(): Promise<void> }): KvConnector => ({
  name: old.name,
  isolation: (tenant) => old.fieldsWithoutSession(tenant),
  prepare: async (turn, budget) => {
    const kv = turn.stored === undefined ? undefined : { ...turn.stored, turn: 0 }
    const { presence, fields, claim } = await old.attach({ ...turn, startsAnew: turn.restarted }, kv, budget)
    return { presence: adaptPresence(presence), fields, ...(claim === settledClaim ? {} : { claim }) }
  },
  finish: async ({ claim, ...turn }) => {
    const outcome = await old.offload({ ...turn, turn, claim: String(claim) })
    return outcome.kind === 'superseded' ? { kind: 'unchanged' } : outcome
  },
  release: ({ claim, ...turn }) => old.detach(turn, String(claim), turn.signal),
  remove: (removal, signal) => old.remove(removal, signal),
  sweep: (artefacts, signal) =>
    old.reconcile(
      (ids) => artefacts.known(ids),
      signal,
      (ids) => artefacts.forget(ids),
    ),
  close: () => old.close(),
})

const adaptPresence = (presence: AttachOutcome['presence']): KvPresence => {
  switch (presence.kind) {
    case 'resident':
      return { kind: 'hit', tier: presence.tier ?? 'gpu', tokens: presence.tokens }
    case 'loaded':
      return { kind: 'hit', tier: 'store', tokens: presence.tokens, loadMs: presence.loadMs }
    case 'on-demand':
      return { kind: 'hit', tier: 'store', tokens: presence.tokens }
    case 'empty':
      return { kind: 'miss', reason: 'nothing_stored' }
    case 'missing':
      return { kind: 'miss', reason: 'kv_missing', gone: presence.isKept !== true }
    case 'incompatible':
      return { kind: 'miss', reason: 'kv_incompatible' }
    case 'not-worthwhile':
      return { kind: 'miss', reason: 'load_too_slow' }
    case 'timed-out':
      return { kind: 'miss', reason: 'load_timeout' }
    case 'failed':
      return { kind: 'miss', reason: 'load_failed', cause: presence.cause }
    case 'unavailable':
      return { kind: 'miss', reason: 'kv_store_unavailable', cause: presence.cause }
    case 'no-room':
      return { kind: 'miss', reason: 'no_slot' }
  }
}
