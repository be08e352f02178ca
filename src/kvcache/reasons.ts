/** Why a turn starts without stored KV. docs/presence.md says what to do about each. */
export type KvMissReason =
  /** Nothing is stored of the session. */
  | 'nothing_stored'
  /** The connector stores nothing: the engine has a cache of its own, or none. */
  | 'engine_cache'
  | 'no_connector'
  /** The engine ignores the gateway's fields on this path. */
  | 'fields_ignored'
  /** The stored KV is gone or damaged. */
  | 'kv_missing'
  /** Another connector, build or model stored it. It stays for pods that can load it. */
  | 'kv_incompatible'
  | 'load_too_slow'
  /** Engines reused nothing of what was loaded into them lately. */
  | 'engine_reuses_nothing'
  | 'load_timeout'
  | 'load_failed'
  /** The store of KV did not answer several times, and was not asked. */
  | 'kv_store_unavailable'
  /** The pod has no room to keep the session apart. */
  | 'no_slot'
  /** The folder of stored KV belongs to another session store. */
  | 'kv_folder_foreign'

/** Why nothing of a turn was stored, in words of the gateway's connectors; one loaded from a module may have others. */
export const notStoredReasons = [
  'engine_cache',
  'no_connector',
  'fields_ignored',
  'too_short',
  'too_large',
  'offload_failed',
  /** The engine did not write it in time. */
  'not_stored',
  /** The slot held something else, or another turn took it. */
  'not_verified',
  /** The connector failed before the turn. */
  'not_attached',
  /** Another pod than the chosen one served the turn. */
  'served_elsewhere',
  /** Every slot of the pod was in use. */
  'no_room',
  'tokens_unknown',
  'kv_store_unavailable',
  'kv_folder_foreign',
] as const

export type NotStoredReason = (typeof notStoredReasons)[number]
