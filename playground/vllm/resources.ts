import { statfs } from 'node:fs/promises'
import { freemem } from 'node:os'

/** Memory and disk, in bytes. */
export interface Resources {
  readonly memoryBytes: number
  readonly diskBytes: number
}

const gibibyte = 1024 ** 3

/** What one pod takes with its LMCache server once both hold full caches, and what the coordinator adds. */
const podBytes = 5.5 * gibibyte
const coordinatorBytes = 0.7 * gibibyte
/** A pod that has served little takes this much; with less than that a start cannot end well. */
const startingPodBytes = 3.5 * gibibyte
/** The environment, the model, and room for stored KV. */
const environmentBytes = 7 * gibibyte
const storeBytes = 1 * gibibyte

/** What a fleet takes when it is busy. */
export const fleetNeeds = (fleet: { readonly pods: number; readonly installed: boolean }): Resources => ({
  memoryBytes: fleet.pods * podBytes + coordinatorBytes,
  diskBytes: storeBytes + (fleet.installed ? 0 : environmentBytes),
})

/** What the machine can still give: memory that this process may use, and the disk under `folder`. */
export const availableResources = async (folder: string): Promise<Resources> => {
  const disk = await statfs(folder)
  return {
    // A container's limit may be lower than what the machine has free.
    memoryBytes: Math.min(freemem(), process.availableMemory()),
    diskBytes: disk.bavail * disk.bsize,
  }
}

/** One line: what it takes and how long. */
export const describeNeeds = (fleet: { readonly pods: number; readonly installed: boolean }): string => {
  const { memoryBytes, diskBytes } = fleetNeeds(fleet)
  const minutes = fleet.installed ? 'about 2 minutes' : 'about 2 minutes, after several more for the installation,'
  return `needs up to ${gigabytes(memoryBytes)} of memory and ${gigabytes(diskBytes)} of disk, and ${minutes} on two processors`
}

/** Why a fleet cannot be started with what is there, or undefined. A machine that is only tight gets its chance. */
export const shortageOf = (
  fleet: { readonly pods: number; readonly installed: boolean },
  available: Resources,
): string | undefined => {
  const memoryBytes = fleet.pods * startingPodBytes + coordinatorBytes
  const { diskBytes } = fleetNeeds(fleet)
  if (available.memoryBytes < memoryBytes) {
    return `There is not enough memory: ${plural(fleet.pods)} of vLLM take at least ${gigabytes(memoryBytes)}, ${gigabytes(available.memoryBytes)} are available.`
  }
  if (available.diskBytes < diskBytes) {
    return `There is not enough room on the disk: ${gigabytes(diskBytes)} are needed, ${gigabytes(available.diskBytes)} are free.`
  }
  return undefined
}

const gigabytes = (bytes: number): string => `${(bytes / gibibyte).toFixed(1)} GB`
const plural = (pods: number): string => (pods === 1 ? 'one pod' : `${pods} pods`)
