import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Decision, ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { newSessionId } from '../../../src/context/session-id.ts'
import {
  type ContextGateway,
  createContextGateway,
  podA,
  podB,
  promptBody,
  type TurnAnswer,
} from '../../support/context-gateway.ts'
import { forwarded, ticketOf } from '../../support/decisions.ts'
import { type WatchedScope, watchedScope } from '../../support/gateway-request.ts'

type Tenant = 'key-a' | 'key-b'

const weights = { create: 3, use: 5, manage: 3, list: 1, end: 6, advance: 1, sweep: 1, restart: 1 } as const
type Kind = keyof typeof weights
const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind as Kind))

const rarely = fc.integer({ min: 0, max: 9 }).map((n) => n === 0)

const anyAnswer: fc.Arbitrary<TurnAnswer> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ promptTokens: fc.integer({ min: 1, max: 5000 }) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<TurnAnswer>(
      { status: 400 },
      { status: 500 },
      { complete: false },
      { complete: false, clientDisconnected: true },
      { complete: false, upstreamFailed: true },
      { status: 503, complete: false, upstreamFailed: true, servedBy: null, withoutUsage: true },
      { servedBy: podA },
      { servedBy: podB },
    ),
  },
)

/** One step; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...kinds),
  as: fc.constantFrom<Tenant>('key-a', 'key-b'),
  /** Which session, of all that were created or of the tenant's own; for `end`, which turn. */
  place: fc.nat(30),
  isOwn: fc.constantFrom(true, true, true, false),
  path: fc.constantFrom('/v1/context', '/v1/completions'),
  key: fc.constantFrom('', '', 'k1', 'k2'),
  ttl: fc.constantFrom('', '', '30'),
  method: fc.constantFrom('GET', 'PATCH', 'DELETE'),
  limit: fc.integer({ min: 1, max: 5 }),
  /** The client disconnects before the decision. */
  leaves: rarely,
  answer: anyAnswer,
  isReportedTwice: rarely,
  seconds: fc.constantFrom(1, 20, 61, 601, 90_000),
  pod: fc.constantFrom(podA, podB),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** Steps that happen at once. No turn ends while the store is down: that waits for the store. */
const anyRound = fc.record({ storeIsDown: rarely, steps: fc.array(anyStep, { minLength: 1, maxLength: 4 }) })
type Round = typeof anyRound extends fc.Arbitrary<infer T> ? T : never

const optional = (name: string, value: string): Readonly<Record<string, string>> =>
  value === '' ? {} : { [name]: value }

/** Plays steps against a gateway, and checks with each what its tenant gets to see. */
class Play {
  readonly gateway: ContextGateway = createContextGateway({ sessionsPerPod: 2, batchSize: 3, messageTimeoutMs: 0 })
  readonly #neverMade = newSessionId()
  readonly #owners = new Map<string, Tenant>()
  readonly #deleted = new Set<string>()
  readonly #turns: ForwardDecision[] = []

  /** Ends every turn, in the order they began. */
  async endAll(): Promise<void> {
    for (const turn of this.#turns.splice(0)) await this.gateway.serve(turn)
  }

  async playRound({ storeIsDown, steps }: Round): Promise<void> {
    this.gateway.store.breakDown(storeIsDown ? 'all' : [])
    for (const pod of [podA, podB]) this.gateway.pods.setReady(pod, true)
    const moves = steps.filter(({ kind }) => !storeIsDown || kind !== 'end')
    await Promise.all(moves.map((move) => this.#play(move)))
    this.gateway.store.breakDown([])
  }

  async #play(move: Step): Promise<void> {
    switch (move.kind) {
      case 'create':
        return this.#create(move)
      case 'use':
        return this.#use(move)
      case 'manage':
        return this.#manage(move)
      case 'list':
        return this.#list(move)
      case 'end':
        return this.#end(move)
      case 'advance':
        return this.gateway.advance(move.seconds)
      case 'sweep':
        return this.gateway.reaper.sweepAndWait()
      case 'restart':
        return this.gateway.fleet.restart(move.pod)
    }
  }

  #pick({ place, isOwn, as }: Step): string {
    const made = [...this.#owners.keys()].filter((id) => !isOwn || this.#owners.get(id) === as)
    return [...made, this.#neverMade][place % (made.length + 1)] ?? this.#neverMade
  }

  async #create(move: Step): Promise<void> {
    const decision = await this.gateway.send(
      {
        path: move.path,
        as: move.as,
        body: promptBody,
        headers: { 'x-session-ttl': '60', ...optional('idempotency-key', move.key) },
      },
      scopeOf(move),
    )
    if (decision.kind !== 'forward') return
    const id = decision.responseHeaders['x-session-id']
    if (id !== undefined) {
      expect([move.as, undefined]).toContain(this.#owners.get(id))
      expect(this.#deleted.has(id)).toBe(false)
      this.#owners.set(id, move.as)
    }
    this.#turns.push(decision)
  }

  async #use(move: Step): Promise<void> {
    const id = this.#pick(move)
    const wasDeleted = this.#deleted.has(id)
    const decision = await this.gateway.send(
      {
        path: '/v1/completions',
        as: move.as,
        headers: { 'x-session-id': id, ...optional('x-session-ttl', move.ttl) },
      },
      scopeOf(move),
    )
    if (this.#owners.get(id) !== move.as || wasDeleted) expectNoSession(decision)
    if (decision.kind === 'forward') this.#turns.push(decision)
  }

  async #manage(move: Step): Promise<void> {
    const id = this.#pick(move)
    const wasDeleted = this.#deleted.has(id)
    const decision = await this.gateway.send({
      method: move.method,
      path: `/v1/context/${id}`,
      as: move.as,
      ...(move.method === 'PATCH' ? { body: { ttl: 600 } } : {}),
    })
    if (decision.kind === 'response') {
      expect({ owner: this.#owners.get(id), wasDeleted }).toEqual({ owner: move.as, wasDeleted: false })
      expect(decision.body).toMatchObject({ id })
      if (move.method === 'DELETE') this.#deleted.add(id)
      return
    }
    expect(['session_not_found', 'session_store_unavailable']).toContain(
      decision.kind === 'reject' ? decision.error.code : decision.kind,
    )
  }

  async #list(move: Step): Promise<void> {
    const deletedBefore = new Set(this.#deleted)
    const decision = await this.gateway.send({
      method: 'GET',
      path: `/v1/context?limit=${move.limit}&after=${this.#pick(move)}`,
      as: move.as,
    })
    const ids =
      decision.kind === 'response' ? (decision.body as { data: { id: string }[] }).data.map(({ id }) => id) : []
    expect(ids.filter((id) => this.#owners.get(id) !== move.as || deletedBefore.has(id))).toEqual([])
  }

  async #end(move: Step): Promise<void> {
    const [turn] = this.#turns.splice(move.place % (this.#turns.length + 1), 1)
    if (turn === undefined) return
    const ended = this.gateway.answer(turn, move.answer)
    if (ended === undefined) return
    await this.gateway.service.endTurn(ended)
    if (move.isReportedTwice) await this.gateway.service.endTurn(ended)
  }
}

const scopeOf = ({ leaves }: Step): WatchedScope => {
  const scope = watchedScope()
  if (leaves) scope.leave()
  return scope
}

/** Nothing of a session is in the decision: no KV, no update, not even whether there is one. */
const expectNoSession = (decision: Decision): void => {
  if (decision.kind === 'reject') {
    expect(decision.error.code).toBe('no_ready_endpoints')
    return
  }
  if (decision.kind === 'cancelled') return
  const forward = forwarded(decision)
  expect(forward).toMatchObject({ splice: undefined, expectModel: undefined })
  expect(forward.responseHeaders['x-context-cache']).toMatch(
    /^miss; reason=(session_not_found|session_deleted|store_unavailable)$/,
  )
  expect(ticketOf(forward).session).toBeUndefined()
}

describe('any sequence of requests by two tenants', () => {
  test('shows no session to the other one, and leaves nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyRound, { minLength: 5, maxLength: 25, size: 'max' }), async (rounds) => {
        const play = new Play()
        const { gateway } = play
        for (const each of rounds) await play.playRound(each)
        await play.endAll()

        expect(gateway.connector.claims()).toEqual([])
        expect([gateway.pods.running(podA), gateway.pods.running(podB)]).toEqual([0, 0])
        expect(gateway.events.of('fault').filter(([, cause]) => cause instanceof Error)).toEqual([])

        for (let sweeps = 0; sweeps < 3; sweeps += 1) {
          gateway.advance(90_000)
          await gateway.reaper.sweepAndWait()
        }
        expect(gateway.fleet.everything()).toEqual([])
        expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
      }),
      { numRuns: 100, interruptAfterTimeLimit: 10_000 },
    )
  })
})
