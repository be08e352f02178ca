import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { findPython } from '../../../../../playground/vllm/find-python.ts'

describe('findPython', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'python-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  /** A program that answers as an interpreter of that version would. */
  const interpreter = async (name: string, script: string): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, `#!/bin/sh\n${script}\n`)
    await chmod(path, 0o755)
    return path
  }
  const remedy = 'Set PYTHON to a Python of version 3.11 to 3.13.'

  test('takes the first on PATH that runs and is of the right version', async () => {
    await interpreter('python3.12', 'echo "no such version is set" >&2; exit 127')
    await interpreter('python3.11', 'echo 3.11.7 "/opt/python 3/bin/python3.11"')
    await interpreter('python3', 'echo 3.9.2 /usr/bin/python3')
    expect(await findPython({ env: { PATH: folder } })).toEqual({
      found: true,
      python: { path: '/opt/python 3/bin/python3.11', version: '3.11.7' },
    })
  })

  test('PYTHON goes before PATH, and is never replaced by another one', async () => {
    await interpreter('python3.11', 'echo 3.11.7 /usr/bin/python3.11')
    const own = await interpreter('own', 'echo 3.13.0 /own/python')
    expect(await findPython({ env: { PATH: folder, PYTHON: own } })).toMatchObject({ python: { path: '/own/python' } })
    const old = await interpreter('old', 'echo 3.10.13 /old/python')
    expect(await findPython({ env: { PATH: folder, PYTHON: old } })).toEqual({
      found: false,
      reason: `PYTHON=${old} cannot be used: it is 3.10.13. ${remedy}`,
    })
  })

  test.each([
    { name: 'nothing', script: undefined, reason: `No Python of version 3.11 to 3.13 is on PATH. ${remedy}` },
    {
      name: 'one that is too new',
      script: 'echo 3.14.0 /usr/bin/python3',
      reason: `No Python of version 3.11 to 3.13 is on PATH (python3: it is 3.14.0). ${remedy}`,
    },
    {
      name: 'one that says something else',
      script: 'echo hello',
      reason: `No Python of version 3.11 to 3.13 is on PATH (python3: it does not tell its version). ${remedy}`,
    },
  ])('$name on PATH: the reason says what to do', async ({ script, reason }) => {
    if (script !== undefined) await interpreter('python3', script)
    expect(await findPython({ env: { PATH: folder } })).toEqual({ found: false, reason })
  })
})
