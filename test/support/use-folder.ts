import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from '@jest/globals'

/** An empty folder for each test of the file or of the `describe` around it, removed after the test. */
export const useFolder = (): (() => string) => {
  let folder: string | undefined
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'test-'))
  })
  afterEach(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    folder = undefined
  })
  return () => {
    if (folder === undefined) throw new Error('the folder is there only while a test runs')
    return folder
  }
}
