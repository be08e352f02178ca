import { nanoid } from 'nanoid'
import { loadScript } from '../../redis/load-script.ts'
import {
  createScriptRunner,
  type ScriptReply,
  type ScriptRunnerOptions,
  toStoreFault,
} from './session-script-runner.ts'

/** A part of the sessions, with everything that belongs to them. Its keys have a hash tag: one node of a cluster has them. */
export interface Partition {
  /** Runs a script of `scripts/` on the partition. @throws StoreUnavailableError */
  run(script: string, args: readonly (string | number)[]): Promise<ScriptReply>
}

/** The keys of a partition, in the order in which `includes/arguments.lua` has them. */
const keyNames = ['s', 'd', 'x', 'n', 'i', 'b', 'r', 'm', 'q', 'a', 'k', 'f', 'w'] as const

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The first character tells the branches of a session apart, and all of them lie in one partition. */
const placesRead = [1, 2, 3] as const

/** The partition of a key, or of a digest in base64url. Keys of sessions are hashes: each partition has its share. */
const partitionOf = (text: string, count: number): number => {
  let number = 0
  for (const place of placesRead) number = number * alphabet.length + Math.max(0, alphabet.indexOf(text.charAt(place)))
  return number % count
}

/** All partitions of a store. */
export interface Partitions {
  /** Names the store's data, and reads how many partitions it has. */
  identity(): Promise<string>
  all(): Promise<readonly Partition[]>
  /** The partition of a session's key, of an artefact's name, or of a digest. */
  of(text: string): Promise<Partition>
  /** Each partition that some of the items lie in, with those items. */
  group<T>(items: readonly T[], textOf: (item: T) => string): Promise<ReadonlyMap<Partition, readonly T[]>>
  /** Whether two of them lie in one partition. True while it is not known how many there are. */
  areTogether(text: string, other: string): boolean
}

/** The store is of another number of partitions, or of the layout before them. Waiting does not mend it. */
export class StoreLayoutError extends Error {
  override readonly name = 'StoreLayoutError'
}

export interface PartitionsOptions extends ScriptRunnerOptions {
  /** Into how many a new store is split. */
  readonly partitionsOfNewStore: number
  /** How many there must be; undefined: any number. */
  readonly wantedPartitions: number | undefined
}

/**
 * The partitions of a store. How many there are is fixed when the first gateway starts; the others read it.
 * @throws StoreUnavailableError from every method while Redis has not said how many there are.
 * @throws StoreLayoutError from every method when the store cannot be used.
 */
export const createPartitions = (options: PartitionsOptions): Partitions => {
  const { connection, wantedPartitions: wanted } = options
  const run = createScriptRunner(options)
  const identityScript = loadScript(new URL('scripts/store/', import.meta.url), 'identity')
  const { keyPrefix } = connection
  /** What a store without a name is called: once it is known, as before it lost its data. */
  let storeName = nanoid()
  let known: readonly Partition[] | undefined

  const partition = (number: number): Partition => {
    const keys = keyNames.map((name) => `${keyPrefix}{${number}}:${name}`)
    return { run: (script, args) => run(script, keys, args) }
  }

  const identity = async (): Promise<string> => {
    const args = [storeName, known?.length ?? wanted ?? options.partitionsOfNewStore]
    const reply = await connection.run(identityScript, [`${keyPrefix}store`], args).catch(toStoreFault)
    if (!Array.isArray(reply)) throw new StoreLayoutError(earlierLayoutText(keyPrefix))
    const [name, count] = reply.map(String)
    const expected = known?.length ?? wanted ?? Number(count)
    if (expected !== Number(count)) throw new StoreLayoutError(otherNumberText({ count: Number(count), expected }))
    known ??= Array.from({ length: expected }, (_, number) => partition(number))
    storeName = name ?? storeName
    return storeName
  }

  const all = async (): Promise<readonly Partition[]> => {
    if (known === undefined) await identity()
    return known ?? []
  }

  const at = (partitions: readonly Partition[], text: string): Partition => {
    const found = partitions[partitionOf(text, partitions.length)]
    if (found === undefined) throw new Error('The store has no partition')
    return found
  }

  return {
    identity,
    all,
    of: async (text) => at(known ?? (await all()), text),
    group: async (items, textOf) => {
      const partitions = await all()
      return Map.groupBy(items, (item) => at(partitions, textOf(item)))
    },
    areTogether: (text, other) =>
      known === undefined || partitionOf(text, known.length) === partitionOf(other, known.length),
  }
}

const earlierLayoutText = (keyPrefix: string): string =>
  `Redis holds sessions of an earlier version under ${keyPrefix}, which this version cannot read. Empty it: ` +
  `redis-cli --scan --pattern '${keyPrefix}*' | xargs redis-cli unlink. Or set sessions.keyPrefix to another prefix.`

const otherNumberText = ({ count, expected }: { readonly count: number; readonly expected: number }): string =>
  `The sessions in Redis lie in ${count} partitions, not in ${expected}: their number is fixed at the first start. ` +
  `Set sessions.partitions to ${count}, or sessions.keyPrefix to another prefix.`
