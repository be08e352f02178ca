/** The fleet that a trace is replayed on. Every pod is alike. */
export interface FleetSettings {
  readonly pods: number
  /** Blocks of KV that fit into one pod; may be 0 or infinite. */
  readonly podBlocks: number
  /** Blocks of KV that fit into the persistent store; may be 0 (there is none) or infinite. */
  readonly storeBlocks: number
  /** Prompt tokens that one pod computes in a second, one prompt after the other. */
  readonly prefillTokensPerSecond: number
  /** Tokens whose KV one pod loads from the store in a second, one load after the other, while it computes. */
  readonly loadTokensPerSecond: number
  /** Tokens that one request generates in a second, beside everything else. */
  readonly decodeTokensPerSecond: number
  /** The trace's times are multiplied by this: 0.5 lets the same requests come twice as fast. */
  readonly timeScale: number
  /** Of each pod, which then keeps KV in its slots and in no blocks. Default: turns need none. */
  readonly slots?: SlotSettings | undefined
}

/** Pods whose turns run in slots. */
export interface SlotSettings {
  readonly perPod: number
  /** Of the whole fleet: so many pods compute at full speed at a time; more share it. May be infinite. */
  readonly processors: number
  /** What a turn takes of a processor beside its tokens, milliseconds: control calls, Envoy, the gateway. */
  readonly turnOverheadMs: number
  /** Whether a conversation's next request waits for the answer before it, and for its pause where the trace knows that. */
  readonly waitsForAnswers: boolean
}

/** So many pods compute at full speed at a time. */
export const podsAtATime = ({ pods, slots }: FleetSettings): number => Math.min(pods, slots?.processors ?? pods)

/** What a load takes beside its bytes, milliseconds: the control calls. */
export const loadOverheadMs = 10

/** A token's KV in bytes: 8 billion parameters, grouped attention, 16 bits. Only the ratio of bytes to time matters. */
export const bytesPerToken = 131_072

/** How often a gateway asks engines for their metrics, milliseconds. */
export const metricsIntervalMs = 1000
