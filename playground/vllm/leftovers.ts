import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasErrorCode } from '../launcher/has-error-code.ts'
import { isAlive } from './is-alive.ts'

/** Where LMCache's and vLLM's shared memory shows as files. */
export const sharedMemoryFolder = '/dev/shm'

const marker = 'ctx-vllm'

/**
 * A fleet's name, part of the name of everything that it leaves in folders it does not have for itself. It carries the
 * process id, so that a later fleet sees whether they are in use: a process that is killed cannot remove them.
 */
export const fleetName = (options: { readonly pid: number; readonly unique: string }): string =>
  `${marker}-${options.pid}-${options.unique}`

/** Removes the files and folders in `folder` that have the fleet's name in theirs. */
export const removeLeftovers = async (fleet: string, folder: string): Promise<void> => {
  for (const name of await entries(folder)) {
    if (name.includes(fleet)) await rm(join(folder, name), { recursive: true, force: true })
  }
}

/** Removes the files and folders in `folder` that belong to fleets whose process is gone. */
export const removeAbandoned = async (folder: string): Promise<void> => {
  for (const name of await entries(folder)) {
    const owner = new RegExp(`${marker}-(\\d+)-`).exec(name)?.[1]
    if (owner !== undefined && !isAlive(Number(owner))) await rm(join(folder, name), { recursive: true, force: true })
  }
}

const entries = async (folder: string): Promise<readonly string[]> => {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return []
    throw error
  }
}
