import type { SessionKey } from '../../sessions/session-record.ts'
import type { ClaimOutcome, ClaimSlot, SlotContent, SlotEntry, SlotLedger, SlotTurn } from './slot-ledger.ts'
import { chooseSlot, endLoad, expire, isInUse, needsWipe, newSlotRecord, type SlotRecord } from './slot-record.ts'

/** A ledger for one gateway process. `now` is its clock in milliseconds; only differences count. */
export const createMemorySlotLedger = (options: { readonly now?: () => number } = {}): SlotLedger =>
  new MemorySlotLedger(options.now ?? (() => performance.now()))

class MemorySlotLedger implements SlotLedger {
  readonly #now: () => number
  readonly #records = new Map<string, SlotRecord>()
  #claims = 0

  constructor(now: () => number) {
    this.#now = now
  }

  async claim(request: ClaimSlot): Promise<ClaimOutcome> {
    const nowMs = this.#now()
    const chosen = chooseSlot(request.slots, (slot) => this.#find(request.pod, slot, nowMs), { ...request, nowMs })
    if (chosen === undefined) return { kind: 'no-room' }
    const record = this.#findOrAdd(request.pod, chosen, nowMs)
    takeOver(record, request.session)
    this.#claims += 1
    record.used = this.#claims
    record.leases.set(request.turnId, nowMs + request.leaseMs)
    if (record.loader === undefined && record.content.kind === 'unknown') startLoad(record, request, nowMs)
    return {
      kind: 'claimed',
      slot: chosen,
      role: roleOf(record, request.turnId),
      content: record.content,
      others: record.leases.size - 1,
      revision: record.revision,
    }
  }

  async reload(turn: SlotTurn & { readonly revision: number; readonly loadMs: number }): Promise<boolean> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (record === undefined || record.revision !== turn.revision || record.loader !== undefined) return false
    if (!record.leases.has(turn.turnId)) return false
    startLoad(record, turn, nowMs)
    return true
  }

  async settle(turn: SlotTurn & { readonly content: SlotContent; readonly closeMs: number }): Promise<boolean> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (record?.loader?.turnId !== turn.turnId) return false
    record.loader = undefined
    record.closedUntilMs = nowMs + turn.closeMs
    record.closedBy = turn.turnId
    if (turn.content.kind !== 'unknown') record.residues = []
    write(record, turn.content)
    return true
  }

  async beginSave(
    turn: SlotTurn & { readonly session: SessionKey; readonly leaseMs: number },
  ): Promise<'held' | 'superseded' | 'lost'> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (record?.owner !== turn.session || !record.leases.has(turn.turnId)) return 'lost'
    if (record.leases.size > 1) {
      this.#letGo(record, turn.turnId)
      return 'superseded'
    }
    record.leases.set(turn.turnId, nowMs + turn.leaseMs)
    return 'held'
  }

  async release(turn: SlotTurn & { readonly content?: SlotContent }): Promise<number> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (record === undefined) return 0
    const isClosed = record.closedUntilMs > nowMs
    const isCloser = isClosed && record.closedBy === turn.turnId
    const isParty = record.leases.has(turn.turnId) || record.loader?.turnId === turn.turnId
    if (!isParty && !isCloser) return record.leases.size
    this.#letGo(record, turn.turnId)
    if (turn.content !== undefined && record.loader === undefined && isCloser === isClosed) {
      record.closedUntilMs = 0
      write(record, turn.content)
    }
    return record.leases.size
  }

  async slotsOf(session: SessionKey): Promise<readonly { readonly pod: string; readonly slot: number }[]> {
    return [...this.#records.values()]
      .filter((record) => isTraceOf(record, session))
      .map(({ pod, slot }) => ({ pod, slot }))
  }

  async addTrace({ pod, slot, session }: { pod: string; slot: number; session: SessionKey }): Promise<void> {
    const record = this.#findOrAdd(pod, slot, this.#now())
    if (!isTraceOf(record, session)) record.residues = [...record.residues, session]
  }

  async list(): Promise<readonly SlotEntry[]> {
    const nowMs = this.#now()
    return [...this.#records.values()].map((record) => {
      expire(record, nowMs)
      return {
        pod: record.pod,
        slot: record.slot,
        inUse: isInUse(record, nowMs),
        needsWipe: needsWipe(record, nowMs),
        kind: record.content.kind,
        mark: record.content.kind === 'holds' ? record.content.mark : undefined,
      }
    })
  }

  async seize(
    turn: SlotTurn & { readonly session: SessionKey | undefined; readonly leaseMs: number },
  ): Promise<'seized' | 'in-use' | 'nothing-to-do'> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (turn.session !== undefined && (record === undefined || !isTraceOf(record, turn.session))) return 'nothing-to-do'
    if (record !== undefined && isInUse(record, nowMs)) return 'in-use'
    if (turn.session === undefined && record !== undefined && !needsWipe(record, nowMs)) return 'nothing-to-do'
    const seized = this.#findOrAdd(turn.pod, turn.slot, nowMs)
    seized.leases.set(turn.turnId, nowMs + turn.leaseMs)
    startLoad(seized, { turnId: turn.turnId, loadMs: turn.leaseMs }, nowMs)
    return 'seized'
  }

  async wiped(turn: SlotTurn): Promise<boolean> {
    const nowMs = this.#now()
    const record = this.#find(turn.pod, turn.slot, nowMs)
    if (record?.loader?.turnId !== turn.turnId) return false
    record.loader = undefined
    record.leases.delete(turn.turnId)
    if (record.leases.size === 0) record.owner = undefined
    record.residues = []
    write(record, { kind: 'clean' })
    return true
  }

  async forgetPod(pod: string): Promise<void> {
    for (const [key, record] of this.#records) if (record.pod === pod) this.#records.delete(key)
  }

  #find(pod: string, slot: number, nowMs: number): SlotRecord | undefined {
    const record = this.#records.get(keyOf(pod, slot))
    if (record !== undefined) expire(record, nowMs)
    return record
  }

  #findOrAdd(pod: string, slot: number, nowMs: number): SlotRecord {
    const found = this.#find(pod, slot, nowMs)
    if (found !== undefined) return found
    const added = newSlotRecord(pod, slot)
    this.#records.set(keyOf(pod, slot), added)
    return added
  }

  #letGo(record: SlotRecord, turnId: string): void {
    record.leases.delete(turnId)
    if (record.loader?.turnId === turnId) endLoad(record)
  }
}

const keyOf = (pod: string, slot: number): string => `${pod}|${slot}`

const isTraceOf = (record: SlotRecord, session: SessionKey): boolean =>
  record.owner === session || record.residues.includes(session)

const takeOver = (record: SlotRecord, session: SessionKey): void => {
  if (record.owner === session) return
  const before = record.owner === undefined ? record.residues : [...record.residues, record.owner]
  if (record.owner !== undefined) record.content = { kind: 'unknown' }
  record.residues = before.filter((earlier) => earlier !== session)
  record.owner = session
}

const startLoad = (record: SlotRecord, turn: { turnId: string; loadMs: number }, nowMs: number): void => {
  record.loader = { turnId: turn.turnId, untilMs: nowMs + turn.loadMs }
  record.revision += 1
}

const write = (record: SlotRecord, content: SlotContent): void => {
  record.content = content
  record.revision += 1
}

const roleOf = (record: SlotRecord, turnId: string): 'load' | 'wait' | 'check' => {
  if (record.loader === undefined) return 'check'
  return record.loader.turnId === turnId ? 'load' : 'wait'
}
