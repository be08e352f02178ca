/** What a connector finds out about an engine by asking it, for the operator. Turns go on as they are. */
export interface EngineFinding {
  /** `engine_shares_kv`: the engine can start one tenant's request from another one's KV, whatever the gateway sends. */
  readonly kind: 'engine_shares_kv'
  /** One sentence that names the engine, the consequence and the remedy. */
  readonly text: string
}
