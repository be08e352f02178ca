import type { JsonValue, KvConnector, KvPresence as NewPresence } from '../../../src/kvcache/kv-connector.ts'
import type { AttachOutcome, KvPresence, KvConnector as OldConnector } from './old-kv-port.ts'

/** A connector of the new port as the contract suite, which still meets the old one, calls it. A fault is an outcome, as its host makes it. */
export const asOldConnector = (
  connector: Omit<Required<KvConnector>, 'sweep' | 'check'> & Pick<KvConnector, 'sweep'>,
): OldConnector & { close(): Promise<void> } => ({
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
  reconcile: async (known, signal, forget = async () => {}) =>
    (await connector.sweep?.({ known, forget }, signal)) ?? 0,
  close: async () => connector.close(),
})

const oldPresence = (presence: NewPresence): KvPresence => {
  if (presence.kind === 'hit') {
    const { tier, tokens, loadMs } = presence
    if (tier !== 'store') return { kind: 'resident', tokens, ...(tier === 'cpu' ? { tier } : {}) }
    return loadMs === undefined ? { kind: 'on-demand', tokens } : { kind: 'loaded', tokens, loadMs }
  }
  switch (presence.reason) {
    case 'nothing_stored':
      return { kind: 'empty' }
    case 'kv_missing':
      return presence.gone === true ? { kind: 'missing' } : { kind: 'missing', isKept: true }
    case 'kv_incompatible':
      return { kind: 'incompatible' }
    case 'load_too_slow':
      return { kind: 'not-worthwhile' }
    case 'load_timeout':
      return { kind: 'timed-out' }
    case 'kv_store_unavailable':
      return { kind: 'unavailable', cause: presence.cause }
    case 'no_slot':
      return { kind: 'no-room' }
    default:
      return { kind: 'failed', cause: presence.cause }
  }
}
