import type { Step } from './chunk-ledger-steps.ts'

interface Owned {
  readonly salt: string
  readonly name: string
  readonly chunk: string
}

interface OpenTurn {
  readonly salt: string
  readonly turnId: string
  readonly leaseMs: number
}

/** A ledger as one would explain it: lists of who has what, looked through from end to end. */
export class ChunkLedgerModel {
  #held: readonly Owned[] = []
  #claimed: readonly Owned[] = []
  #open: readonly OpenTurn[] = []
  /** Salts to sweep, with how often any salt had become unsettled by then. */
  readonly #unsettled = new Map<string, number>()
  #times = 0
  /** What `unsettled` answered, newest first. */
  #answers: readonly ReadonlyMap<string, number>[] = []

  get isEmpty(): boolean {
    return this.#held.length + this.#claimed.length + this.#open.length + this.#unsettled.size === 0
  }

  /** What the call must answer: for `unsettled` only the salts, since marks and ages are the ledger's own. */
  take(step: Step): unknown {
    this.#expire()
    switch (step.kind) {
      case 'open':
        this.#open = [...this.#open.filter((turn) => !isTurn(turn, step)), step]
        return undefined
      case 'settle':
        this.#open = this.#open.filter((turn) => !isTurn(turn, step))
        if (!step.tidy) this.#unsettle(step.salt)
        return undefined
      case 'hold':
        return this.#hold(step)
      case 'release':
        return this.#release(step)
      case 'deleted':
        this.#claimed = this.#claimed.filter((claim) => !isNamed(claim, step))
        return undefined
      case 'claimUnheld': {
        const unheld = [...new Set(step.chunks)].filter((chunk) => !this.#isHeld(step.salt, chunk)).sort()
        this.#claim(step, unheld)
        return unheld
      }
      case 'unsettled':
        this.#answers = [new Map(this.#unsettled), ...this.#answers]
        return [...this.#unsettled.keys()].sort()
      case 'swept': {
        const seen = this.#answers[step.answersAgo]?.get(step.salt)
        if (this.#unsettled.get(step.salt) === seen) this.#unsettled.delete(step.salt)
        return undefined
      }
    }
  }

  #hold(step: Extract<Step, { kind: 'hold' }>): 'held' | 'being-deleted' {
    const isGoing = this.#claimed.some(
      (claim) => isNamed(claim, step) || (claim.salt === step.salt && step.chunks.includes(claim.chunk)),
    )
    if (isGoing) return 'being-deleted'
    const new_ = step.chunks.filter((chunk) => !this.#held.some((own) => isNamed(own, step) && own.chunk === chunk))
    this.#held = [...this.#held, ...new_.map((chunk) => ({ salt: step.salt, name: step.name, chunk }))]
    return 'held'
  }

  #release(step: Extract<Step, { kind: 'release' }>): unknown {
    const own = this.#held.filter((hold) => isNamed(hold, step))
    this.#held = this.#held.filter((hold) => !isNamed(hold, step))
    this.#claim(
      step,
      own.map((hold) => hold.chunk).filter((chunk) => !this.#isHeld(step.salt, chunk)),
    )
    const unheld = new Set(this.#claimed.filter((claim) => isNamed(claim, step)).map((claim) => claim.chunk))
    const lastOfSalt = !this.#held.some((hold) => hold.salt === step.salt)
    return Array.from({ length: step.times }, () => ({ unheld: [...unheld].sort(), lastOfSalt }))
  }

  #claim({ salt, name }: { readonly salt: string; readonly name: string }, chunks: readonly string[]): void {
    this.#claimed = [...this.#claimed, ...chunks.map((chunk) => ({ salt, name, chunk }))]
  }

  #isHeld(salt: string, chunk: string): boolean {
    return this.#held.some((hold) => hold.salt === salt && hold.chunk === chunk)
  }

  #unsettle(salt: string): void {
    this.#times += 1
    this.#unsettled.set(salt, this.#times)
  }

  #expire(): void {
    for (const turn of this.#open.filter(({ leaseMs }) => leaseMs === 0)) this.#unsettle(turn.salt)
    this.#open = this.#open.filter(({ leaseMs }) => leaseMs > 0)
  }
}

const isNamed = (own: Owned, holder: { readonly salt: string; readonly name: string }): boolean =>
  own.salt === holder.salt && own.name === holder.name

const isTurn = (turn: OpenTurn, other: { readonly salt: string; readonly turnId: string }): boolean =>
  turn.salt === other.salt && turn.turnId === other.turnId
