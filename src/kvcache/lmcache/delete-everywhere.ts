import type { DirectoryEntry, ObjectKey } from './lmcache-answers.ts'
import type { LmcacheInstance } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { pause } from './pause.ts'

const maxPasses = 12

/**
 * Deletes from the memory of every instance and from the store, and looks until nothing is left. False: something is, after a while, or no instance
 * is there to ask. A store that several instances share is one: LMCache itself has any of them delete from it.
 */
export const deleteEverywhere = async (
  parts: Parts,
  keys: readonly ObjectKey[],
  signal: AbortSignal,
): Promise<boolean> => {
  if (keys.length === 0) return true
  const instances = await parts.instances.all(signal)
  if (instances.length === 0) return false
  for (let pass = 1; pass <= maxPasses; pass += 1) {
    await deleteOnce(parts, { keys, instances, entries: await parts.lmcache.locate(keys, signal) }, signal)
    await pause(parts.limits.lookAgainMs, signal)
    const left = await parts.lmcache.locate(keys, signal)
    if (!isListed(left, instances, ['l1', 'l2'])) return true
    // An instance only reports the deletion of a file that it found: of two that stored the same one, the second stays listed for good. Files were
    // deleted twice by now, some time apart, so a writer that met the first time was met by the second.
    if (pass > 1 && !isListed(left, instances, ['l1'])) return true
  }
  return false
}

const deleteOnce = async (
  parts: Parts,
  found: {
    readonly keys: readonly ObjectKey[]
    readonly instances: readonly LmcacheInstance[]
    readonly entries: readonly DirectoryEntry[]
  },
  signal: AbortSignal,
): Promise<void> => {
  const { keys, instances, entries } = found
  await Promise.all(instances.map(({ address }) => parts.lmcache.deleteObjects(address, { keys, tier: 'l1' }, signal)))
  const left = new Set(entries)
  // First whoever is listed as having stored a file, so that the list is put right; then all that nobody is listed with, by anyone.
  for (const { id, address } of instances) {
    const stored = entries.filter(({ placements }) =>
      placements.some(({ tier, instance_id }) => tier === 'l2' && instance_id === id),
    )
    for (const entry of stored) left.delete(entry)
    await parts.lmcache.deleteObjects(address, { keys: stored.map(({ key }) => key), tier: 'l2' }, signal)
  }
  const [first] = instances
  if (first === undefined) return
  await parts.lmcache.deleteObjects(first.address, { keys: [...left].map(({ key }) => key), tier: 'l2' }, signal)
}

const isListed = (
  entries: readonly DirectoryEntry[],
  instances: readonly LmcacheInstance[],
  tiers: readonly string[],
): boolean => {
  const registered = new Set(instances.map(({ id }) => id))
  return entries.some(({ placements }) =>
    placements.some(({ tier, instance_id }) => tiers.includes(tier) && registered.has(instance_id)),
  )
}

const evictionMs = 5_000
const evictionPollMs = 500

/** Deletes everything under a salt that nothing uses any more, named or not. False: something is left. */
export const purgeSalt = async (parts: Parts, salt: string, signal: AbortSignal): Promise<boolean> => {
  if (!(await deleteEverywhere(parts, await parts.lmcache.keysOfSalt(salt, signal), signal))) return false
  if ((await parts.lmcache.usageGb(salt, 'l2', signal)) === 0) return true
  // What has no name is the coordinator's to evict. It keeps quotas for ever, so this one is lifted when it has done its work.
  await parts.lmcache.forbidSalt(salt, signal)
  try {
    const endMs = performance.now() + evictionMs
    while (performance.now() < endMs && (await parts.lmcache.usageGb(salt, 'l2', signal)) > 0) {
      await pause(evictionPollMs, signal)
    }
  } finally {
    await parts.lmcache.allowSalt(salt, signal)
  }
  return true
}
