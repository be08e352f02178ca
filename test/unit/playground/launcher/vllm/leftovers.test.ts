import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { fleetName, removeAbandoned, removeLeftovers } from '../../../../../playground/vllm/leftovers.ts'

describe('what fleets leave behind', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'leftovers-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const own = fleetName({ pid: process.pid, unique: 'aaaa' })
  const neighbour = fleetName({ pid: process.pid, unique: 'bbbb' })

  test('a fleet removes its own, files and folders, and nothing else', async () => {
    await writeFile(join(folder, `pool_lmc-${own}-pod-0`), '')
    await mkdir(join(folder, own, 'logs'), { recursive: true })
    await writeFile(join(folder, `pool_lmc-${neighbour}-pod-0`), '')
    await removeLeftovers(own, folder)
    expect(await readdir(folder)).toEqual([`pool_lmc-${neighbour}-pod-0`])
  })

  test('what a fleet left whose process is gone is removed, and nothing of a living one or of others', async () => {
    const gone = fleetName({ pid: spawnSync('true').pid, unique: 'cccc' })
    for (const name of [`pool_lmc-${gone}-pod-0`, gone, own, 'ctx-vllm-x-1', 'pool_lmc_podA']) {
      await mkdir(join(folder, name))
    }
    await removeAbandoned(folder)
    expect((await readdir(folder)).sort()).toEqual([own, 'ctx-vllm-x-1', 'pool_lmc_podA'].sort())
  })

  test('a folder that is not there holds nothing', async () => {
    await expect(removeAbandoned(join(folder, 'none'))).resolves.toBeUndefined()
    await expect(removeLeftovers(own, join(folder, 'none'))).resolves.toBeUndefined()
  })
})
