import type { AttachOutcome, KvPresence, KvConnector as OldConnector } from '../../../src/kvcache/kv-connector.ts'
import type { JsonValue, KvConnector, KvPresence as NewPresence } from '../../../src/kvcache/kv-port.ts'

/** A connector of the new port as the contract suite, which still meets the old one, calls it. A fault is an outcome, as its host makes it. */
export const asOldConnector = (connector: Required<KvConnector>): OldConnector & { close(): Promise<void> } => ({
  name: connector.name,
  attach: async (turn, kv, budget): Promise<AttachOutcome> => {
    const { startsAnew = false, mayLoad = true, createdAtMs, ...rest } = turn
    const starting = { ...rest, restarted: startsAnew, mayLoad, createdAtMs, stored: kv }
    try {
      const { presence, fields, claim, notStored } = await connector.prepare(starting, budget)
      const text = JSON.stringify(claim === undefined ? { notStored } : { claim })
      return { presence: oldPresence(presence), fields: fields as AttachOutcome['fields'], claim: text }
    } catch (cause) {
      const presence: KvPresence = budget.signal.aborted ? { kind: 'timed-out' } : { kind: 'failed', cause }
      const fields = connector.isolation(turn.tenant) as AttachOutcome['fields']
      return { presence, fields, claim: JSON.stringify({ notStored: 'not_attached' }) }
    }
  },
  fieldsWithoutSession: (tenant) => connector.isolation(tenant) as AttachOutcome['fields'],
  offload: async ({ turn, claim, promptTokens, ...request }) => {
    const held = JSON.parse(claim) as { readonly claim?: JsonValue; readonly notStored?: string }
    if (held.claim === undefined) return { kind: 'none', reason: held.notStored ?? '' }
    try {
      return await connector.finish({ ...turn, ...request, promptTokens, claim: held.claim })
    } catch (cause) {
      return { kind: 'none', reason: 'offload_failed', cause }
    }
  },
  detach: async (turn, claim, signal) => {
    const held = JSON.parse(claim) as { readonly claim?: JsonValue }
    if (held.claim !== undefined) await connector.release({ ...turn, claim: held.claim, signal })
  },
  remove: (removal, signal) => connector.remove(removal, signal),
  reconcile: (known, signal, forget = async () => {}) => connector.sweep({ known, forget }, signal),
  close: async () => connector.close(),
})

const oldPresence = (presence: NewPresence): KvPresence => {
  if (presence.kind === 'hit') {
    const { tier, tokens, loadMs = 0 } = presence
    return tier === 'store' ? { kind: 'loaded', tokens, loadMs } : { kind: 'resident', tokens }
  }
  switch (presence.reason) {
    case 'nothing_stored':
      return { kind: 'empty' }
    case 'kv_missing':
      return { kind: 'missing' }
    case 'kv_incompatible':
      return { kind: 'incompatible' }
    case 'load_too_slow':
      return { kind: 'not-worthwhile' }
    case 'no_slot':
      return { kind: 'no-room' }
    default:
      return { kind: 'failed', cause: presence.cause }
  }
}
