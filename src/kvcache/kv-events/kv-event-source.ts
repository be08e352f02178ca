/** Where one engine process (one data parallel rank of a pod) publishes its KV events. */
export interface KvEventSource {
  /** ZeroMQ address of its PUB socket, as the gateway can connect to it. */
  readonly endpoint: string
  /** ZeroMQ address of its ROUTER socket for replays; undefined: it cannot be asked for past events. */
  readonly replayEndpoint: string | undefined
  /** First frame of its messages; may be empty. */
  readonly topic: string
}

export const sameSources = (one: readonly KvEventSource[], other: readonly KvEventSource[]): boolean =>
  JSON.stringify(one.map(parts)) === JSON.stringify(other.map(parts))

const parts = (source: KvEventSource): readonly unknown[] => [source.endpoint, source.replayEndpoint, source.topic]
