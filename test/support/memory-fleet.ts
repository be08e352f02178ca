import type { SessionKey } from '../../src/sessions/session-record.ts'

/** KV that lies somewhere: how many tokens of which session. */
export interface KvBlock {
  readonly session: SessionKey
  readonly tokens: number
}

/**
 * Engines and the persistent store between them, reduced to which KV lies where. An engine keeps the KV of a request
 * that names a session (`kv_session`), and reuses what it has of that session.
 */
export class MemoryFleet {
  readonly #pods = new Map<string, Map<SessionKey, KvBlock>>()
  readonly #artefacts = new Map<string, KvBlock>()

  /** An engine answers a request. Returns how many prompt tokens it did not have to compute. */
  compute(
    pod: string,
    request: {
      readonly session: SessionKey | undefined
      readonly promptTokens: number
      readonly outputTokens: number
    },
  ): number {
    const { session, promptTokens, outputTokens } = request
    if (session === undefined) return 0
    const held = this.held(pod, session)
    this.hold(pod, { session, tokens: Math.max(promptTokens + outputTokens, held) })
    return Math.min(held, promptTokens)
  }

  /** Tokens of the session whose KV the pod holds. */
  held(pod: string, session: SessionKey): number {
    return this.#pods.get(pod)?.get(session)?.tokens ?? 0
  }

  hold(pod: string, block: KvBlock): void {
    const blocks = this.#pods.get(pod) ?? new Map<SessionKey, KvBlock>()
    this.#pods.set(pod, blocks.set(block.session, block))
  }

  podsHolding(session: SessionKey): readonly string[] {
    return [...this.#pods].filter(([, blocks]) => blocks.has(session)).map(([pod]) => pod)
  }

  /** Every pod forgets the session, or `pod` alone. */
  erase(session: SessionKey, pod?: string): void {
    for (const [address, blocks] of this.#pods) if (pod === undefined || pod === address) blocks.delete(session)
  }

  /** A pod starts anew and holds nothing. */
  restart(pod: string): void {
    this.#pods.delete(pod)
  }

  store(artefactId: string, block: KvBlock): void {
    this.#artefacts.set(artefactId, block)
  }

  stored(artefactId: string): KvBlock | undefined {
    return this.#artefacts.get(artefactId)
  }

  unstore(artefactId: string): void {
    this.#artefacts.delete(artefactId)
  }

  artefactIds(): readonly string[] {
    return [...this.#artefacts.keys()]
  }

  /** Everything that lies anywhere. */
  everything(): readonly KvBlock[] {
    return [...this.#artefacts.values(), ...[...this.#pods.values()].flatMap((blocks) => [...blocks.values()])]
  }
}
