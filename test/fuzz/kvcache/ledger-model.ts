import type { ClaimOutcome } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { long, type Step, slotIds, turnOf } from './ledger-steps.ts'

/** What must be true of one slot, kept from the outcomes of calls alone. */
interface ModelSlot {
  /** Turns whose lease lasts, with their session; `undefined` for cleaners. */
  readonly holders: Map<string, SessionKey | undefined>
  /** Sessions whose KV may lie there. */
  readonly traces: Set<SessionKey>
  /** The turn that fills the slot for as long as it likes. */
  loader: string | undefined
}

const newSlot = (): ModelSlot => ({ holders: new Map(), traces: new Set(), loader: undefined })

/** The promises of a ledger: who shares a slot, who fills it, whose KV may lie where. */
export class LedgerModel {
  readonly slots = new Map(slotIds.map((id) => [id, newSlot()]))

  tracesOf(session: SessionKey): readonly number[] {
    return slotIds.filter((id) => this.#slot(id).traces.has(session))
  }

  /** Notes the outcome of a call. Returns which promise it breaks, if any. */
  learn(step: Step, outcome: unknown): string | undefined {
    switch (step.kind) {
      case 'claim':
        return this.#claimed(step, outcome as ClaimOutcome)
      case 'reload':
        return outcome === true ? this.#loads(step.slot, turnOf(step), step.loadMs) : undefined
      case 'settle':
        if (outcome === true) this.#settled(step)
        return undefined
      case 'beginSave':
        return this.#saved(step, outcome)
      case 'release':
        this.#releases(step.slot, turnOf(step))
        return undefined
      case 'seize':
        return outcome === 'seized' ? this.#seized(step) : undefined
      case 'wiped':
        if (outcome === true) this.#wiped(step)
        return undefined
      case 'addTrace':
        this.#slot(step.slot).traces.add(step.session)
        return undefined
      case 'forgetPod':
        for (const id of slotIds) this.slots.set(id, newSlot())
        return undefined
    }
  }

  #slot(id: number): ModelSlot {
    return this.slots.get(id) ?? newSlot()
  }

  #claimed(step: Step, outcome: ClaimOutcome): string | undefined {
    if (outcome.kind === 'no-room') return undefined
    const slot = this.#slot(outcome.slot)
    const strangers = [...slot.holders.values()].filter((holder) => holder !== undefined && holder !== step.session)
    if (strangers.length > 0) return 'two sessions hold one slot'
    if (slot.holders.size === 0 && step.idle[outcome.slot] !== true) return 'a busy slot without a turn was claimed'
    slot.traces.add(step.session)
    slot.holders.delete(turnOf(step))
    if (step.leaseMs === long) slot.holders.set(turnOf(step), step.session)
    if (outcome.role === 'load') return this.#loads(outcome.slot, turnOf(step), step.loadMs)
    if (outcome.role === 'check' && slot.loader !== undefined) return 'a slot that is being filled counts as filled'
    if (outcome.role === 'check' && outcome.content.kind === 'unknown') return 'unknown content counts as filled'
    return undefined
  }

  #loads(id: number, turnId: string, loadMs: number): string | undefined {
    const slot = this.#slot(id)
    if (slot.loader !== undefined && slot.loader !== turnId) return 'two turns fill one slot'
    if (slot.loader === undefined && loadMs === long) slot.loader = turnId
    return undefined
  }

  #settled(step: Step): void {
    const slot = this.#slot(step.slot)
    slot.loader = undefined
    if (step.content.kind === 'unknown') return
    slot.traces.clear()
    slot.traces.add(step.session)
  }

  #saved(step: Step, outcome: unknown): string | undefined {
    const slot = this.#slot(step.slot)
    switch (outcome) {
      case 'lost':
        return slot.holders.has(turnOf(step)) ? 'a lease that lasts was lost' : undefined
      case 'superseded': {
        if (slot.holders.size < 2) return 'superseded although no other turn holds the slot'
        this.#releases(step.slot, turnOf(step))
        return undefined
      }
      default:
        return slot.holders.size > 1 ? 'a turn saves while another holds the slot' : undefined
    }
  }

  #releases(id: number, turnId: string): void {
    const slot = this.#slot(id)
    slot.holders.delete(turnId)
    if (slot.loader === turnId) slot.loader = undefined
  }

  #seized(step: Step): string | undefined {
    const slot = this.#slot(step.slot)
    if (slot.holders.size > 0) return 'a slot was seized from a turn'
    if (step.namesSession && !slot.traces.has(step.session)) return 'a slot was seized for no reason'
    if (step.leaseMs === long) slot.holders.set(turnOf(step), undefined)
    return this.#loads(step.slot, turnOf(step), step.leaseMs)
  }

  #wiped(step: Step): void {
    const slot = this.#slot(step.slot)
    const waiting = [...slot.holders.values()].filter((holder) => holder !== undefined)
    slot.holders.delete(turnOf(step))
    slot.loader = undefined
    slot.traces.clear()
    for (const session of waiting) slot.traces.add(session)
  }
}
