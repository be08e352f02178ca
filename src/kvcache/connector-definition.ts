import type { z } from 'zod'
import type { EngineAccess, EngineHttp } from '../engines/engine-http.ts'
import type { DeepReadonly } from '../options/deep-readonly.ts'
import type { RedisConnection } from '../redis/redis-connection.ts'
import type { CacheSalts, Isolation } from './cache-salts.ts'
import type { KvConnector } from './kv-connector.ts'

/** What a connector needs of a logger. No prompt, credential or session id is ever handed to it. */
export interface KvLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** Whose data a session store holds. */
export interface StoreIdentity {
  /** Names the data of the session store, for this pool. Redis that lost its data may get another name. @throws */
  readonly name: () => Promise<string>
  /** After this time without a gateway of the store, another store may take what belongs to it. */
  readonly staleAfterMs: number
}

/** Options of a pool's `kv` that every connector may read. */
export interface SharedOptions {
  readonly directory?: string | undefined
  readonly isolation: Isolation
  readonly callTimeoutMs: number
  readonly minTokens: number
  /** What the operator calls the weights: KV of one version is never loaded under another. Default: not named. */
  readonly modelVersion?: string | undefined
}

type Shape = z.core.$ZodLooseShape
type NoOptions = Record<never, never>
type Output<Own extends Shape> = keyof Own extends never ? unknown : DeepReadonly<z.output<z.ZodObject<Own>>>

/** The options of a pool as a connector reads them: the shared ones and its own. */
export type ConnectorOptions<Own extends Shape = NoOptions> = SharedOptions & Output<Own>

type KvOutage = 'kv_folder_unavailable' | 'kv_store_unavailable' | 'kv_events_unavailable'

/** What a connector may use of its pool and of the gateway. */
export interface ConnectorParts {
  /** `host:port` of every pod that is configured now, ready or not. A connector calls only these, and a claim's. */
  readonly pods: () => readonly string[]
  /** What the source of pods calls the store of KV beside this pod; undefined: nothing. */
  readonly instanceOf: (pod: string) => string | undefined
  /** Calls engines with the pool's key, TLS and authorities; four calls at a time to each. The gateway closes it. */
  readonly http: EngineHttp
  /** Key and TLS of the pool, for a client of one's own. */
  readonly access: EngineAccess
  /** Names of KV that nobody can guess, for engines that keep KV of different salts apart. */
  readonly salts: CacheSalts
  /** Whose KV it is: data that is lost with the session store. */
  readonly identity: StoreIdentity
  /** Redis, with a prefix of keys for this pool; undefined: sessions are in memory, and there is one gateway. */
  readonly redis: RedisConnection | undefined
  /** Longest time of a turn. */
  readonly maxTurnMs: number
  /** KV that no session names is left alone until it is older: its announcement may be on its way. */
  readonly orphanGraceMs: number
  /** Larger artefacts are not stored; undefined: there is no limit. */
  readonly maxArtefactBytes: number | undefined
  /** A turn gave up its place in the pod, so that one that found none (`no_slot`) may have it. Default: it tries later. */
  readonly roomAt: (pod: string) => void
  /** Findings and outages for the operator: logged at most once a minute; in /readyz and a metric until cleared. */
  readonly warnings: {
    raise(kind: 'kv_folder_foreign', subject: string, text: string): void
    /** `subject` is the folder, the address of the store, or the pod. */
    raiseOutage(kind: KvOutage, subject: string, cause: unknown): void
    clear(kind: 'kv_folder_foreign' | KvOutage, subject: string): void
  }
  readonly log: KvLog
}

/** A connector, by its name in the configuration. [registry.ts](registry.ts) lists those of the gateway. */
export interface ConnectorDefinition<Name extends string = string, Own extends Shape = NoOptions> {
  /** In the tag of every payload too: KV of one connector is never given to another. */
  readonly name: Name
  /** Which engines it is for, in the documentation of `kv.connector`. */
  readonly summary: string
  /** Whether it loads KV for turns where `budget.refuseLoad` gives no reason. Default: the engine does. */
  readonly loads?: boolean
  /** Whether it keeps KV in `kv.directory`, which then has to be usable at the start. Default false. */
  readonly usesDirectory?: boolean
  /** Its own options in `kv`, described. One without a default is refused where another connector is selected. */
  readonly options: Own
  /** Faults in a pool's options. `option` is a path in `kv`; no message quotes a value that may be a secret. */
  check?(options: ConnectorOptions<Own>): readonly { readonly option: string; readonly message: string }[]
  /** @throws when it cannot work, with the reason */
  create(options: ConnectorOptions<Own>, parts: ConnectorParts): KvConnector | Promise<KvConnector>
}

/** The definition itself, with its name and options as types. */
export const defineConnector = <const Name extends string, Own extends Shape>(
  definition: ConnectorDefinition<Name, Own>,
): ConnectorDefinition<Name, Own> => definition

/** An option that `check` guarantees. */
export const required = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('the configuration was not checked')
  return value
}
