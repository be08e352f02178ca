import type { ClaimOutcome, SlotContent } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { long, type Step, slotIds, turnOf } from './ledger-steps.ts'

/** What must be true of one slot, kept from the outcomes of calls alone. */
interface ModelSlot {
  /** The turn that took the slot last and has not released it. */
  readonly turnId?: string | undefined
  readonly user?: SessionKey | undefined
  /** Whether its lease lasts. */
  readonly lasts: boolean
  readonly saving?: boolean
  readonly isLong?: boolean
  readonly task?: number | undefined
  readonly owner?: SessionKey | undefined
  readonly content?: SlotContent | undefined
}

/** The promises of a ledger: one turn holds a slot, and content is what the last holder said. */
export class LedgerModel {
  readonly #slots = new Map<number, ModelSlot>(slotIds.map((id) => [id, { lasts: false }]))

  /** Notes the outcome of a call. Returns which promise it breaks, if any. */
  learn(step: Step, outcome: unknown): string | undefined {
    const slot = this.#slot(step.slot)
    const holds = slot.turnId === turnOf(step)
    switch (step.kind) {
      case 'claim':
        return this.#claimed(step, outcome as ClaimOutcome)
      case 'renew': {
        const [held, isHeldElsewhere] = outcome as readonly boolean[]
        if (held !== holds || isHeldElsewhere) return 'renewal does not tell who holds the slot'
        const saving = slot.saving === true || step.saving
        if (holds) this.#slots.set(step.slot, { ...slot, saving, lasts: step.leaseMs === long })
        return undefined
      }
      case 'release': {
        if (!holds) return undefined
        const { owner, content } = step.content === undefined ? slot : { owner: slot.user, content: step.content }
        this.#slots.set(step.slot, { lasts: false, owner, content })
        return undefined
      }
      case 'seize': {
        if ((outcome === undefined) !== slot.lasts) return 'a seizure does not tell whether the slot is held'
        if (outcome === undefined) return undefined
        const { owner, content } = slot
        const turn = { turnId: turnOf(step), lasts: step.leaseMs === long, owner, content }
        this.#slots.set(step.slot, step.mayWait ? { ...turn, user: step.session, saving: true } : turn)
        return undefined
      }
    }
  }

  #slot(id: number): ModelSlot {
    return this.#slots.get(id) ?? { lasts: false }
  }

  /** Why a slot of others was not the one to take. */
  #passedOver({ session, isLong }: Step, free: readonly number[], taken: number): string | undefined {
    if (free.some((id) => this.#slot(id).owner === session)) return 'a slot of the session was passed over'
    return isLong && free.at(-1) !== taken ? 'a long turn did not take the last free slot' : undefined
  }

  #claimed(step: Step, outcome: ClaimOutcome): string | undefined {
    const isFree = (id: number): boolean => step.idle[id] === true && !this.#slot(id).lasts
    const isOfOthers = (id: number): boolean => !this.#slot(id).lasts || this.#slot(id).isLong === true
    const ofLongTurns = slotIds.filter((id) => !isFree(id) && isOfOthers(id))
    const isKept = step.isLong && ofLongTurns.length + 1 >= slotIds.length
    if (outcome.kind !== 'claimed') {
      return outcome.kind === 'no-room' && slotIds.some(isFree) && !isKept
        ? 'an idle slot that nobody holds was not claimed'
        : undefined
    }
    const slot = this.#slot(outcome.slot)
    if (isKept && isFree(outcome.slot)) return 'the last slot without a long turn was taken'
    const task = step.tasks[outcome.slot]
    const hasRun = slot.user === step.session && slot.saving !== true && slot.task !== task
    if (slot.lasts && (step.mayWait || !hasRun)) return 'two turns hold one slot'
    if (step.idle[outcome.slot] !== true) return 'a busy slot was claimed'
    const isOwn = slot.owner === step.session
    const passedOver = isOwn || slot.lasts ? undefined : this.#passedOver(step, slotIds.filter(isFree), outcome.slot)
    if (passedOver !== undefined) return passedOver
    if (outcome.content !== undefined && (!isOwn || outcome.content.mark !== slot.content?.mark)) {
      return 'content of another session was returned'
    }
    const { session: user, leaseMs } = step
    const lasts = leaseMs === long
    const { isLong } = step
    this.#slots.set(outcome.slot, { turnId: turnOf(step), user, lasts, isLong, owner: slot.owner, task })
    return undefined
  }
}
