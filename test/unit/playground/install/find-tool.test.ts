import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { findTool, type ToolRecipe } from '../../../../playground/install/find-tool.ts'
import { InstallError } from '../../../../playground/install/install-once.ts'
import type { Environment } from '../../../../playground/run-command.ts'
import { useFolder } from '../../../support/use-folder.ts'

describe('findTool', () => {
  const folder = useFolder()
  let lines: string[] = []
  let installs = 0

  /** A program that answers `--version`. */
  const put = async (path: string, script: string): Promise<string> => {
    const file = join(folder(), path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, `#!/bin/sh\n${script}\n`)
    await chmod(file, 0o755)
    return file
  }
  const recipe = (install: ToolRecipe['install']): ToolRecipe => ({
    name: 'Tool',
    variable: 'TOOL_BIN',
    program: 'tool',
    remedy: 'Install it.',
    versionPattern: /v(\d+\.\d+)/,
    atLeast: [2, 0],
    directory: join(folder(), 'tools', 'tool'),
    install: (into) => {
      installs += 1
      return install(into)
    },
    installed: (directory) => join(directory, 'tool'),
  })
  const installGood: ToolRecipe['install'] = async (into) => {
    await writeFile(join(into, 'tool'), '#!/bin/sh\necho v2.0\n')
    await chmod(join(into, 'tool'), 0o755)
  }
  const find = (env: Environment, install = installGood) =>
    findTool(recipe(install), { env, toolsDir: join(folder(), 'tools'), report: (line) => lines.push(line) })

  beforeEach(() => {
    lines = []
    installs = 0
  })

  const installed = () => ({ command: [join(folder(), 'tools', 'tool', 'tool')], version: '2.0' })

  test('the file named by the variable comes first', async () => {
    const named = await put('named', 'echo v2.0')
    await put('bin/tool', 'echo v2.0')
    const found = await find({ TOOL_BIN: named, PATH: join(folder(), 'bin') })
    expect(found).toEqual({ command: [named], version: '2.0' })
  })

  test.each([
    { name: 'cannot be run', script: undefined, reason: /ENOENT/ },
    { name: 'is too old', script: 'echo v1.9', reason: /it is 1\.9, 2\.0 is needed/ },
    { name: 'fails', script: 'echo broken >&2; exit 3', reason: /broken/ },
  ])('a named file that $name is refused, whatever else there is', async ({ script, reason }) => {
    const named = script === undefined ? join(folder(), 'none') : await put('named', script)
    await put('bin/tool', 'echo v2.0')
    const outcome = find({ TOOL_BIN: named, PATH: join(folder(), 'bin') })
    await expect(outcome).rejects.toThrow(InstallError)
    await expect(outcome).rejects.toThrow(/^Tool is not available: \S+ cannot be used \(.*\)\. Install it\.$/)
    await expect(outcome).rejects.toThrow(reason)
    expect(installs).toBe(0)
  })

  test('an empty variable counts as none, and PATH is searched in order', async () => {
    await put('one/tool', 'echo v2.1')
    await put('two/tool', 'echo v2.2')
    const PATH = ['none', 'one', 'two'].map((name) => join(folder(), name)).join(':')
    expect(await find({ TOOL_BIN: '', PATH })).toEqual({ command: ['tool'], version: '2.1' })
  })

  test('one on PATH that is too old is reported, and another one installed', async () => {
    const old = await put('bin/tool', 'echo v1.9')
    expect(await find({ PATH: dirname(old) })).toEqual(installed())
    expect(lines).toEqual([
      `Tool: tool cannot be used (it is 1.9, 2.0 is needed); installing into ${join(folder(), 'tools', 'tool')}`,
    ])
  })

  test('a second search installs nothing and reports nothing', async () => {
    await find({})
    lines = []
    expect(await find({})).toEqual(installed())
    expect({ installs, lines }).toEqual({ installs: 1, lines: [] })
  })

  test('a new copy that does not work is not installed again', async () => {
    const outcome = find({}, async (into) => writeFile(join(into, 'tool'), ''))
    await expect(outcome).rejects.toThrow(/cannot be used \(.*\)/)
    expect(installs).toBe(1)
  })

  test('an installation that is not possible fails with a reason of one line', async () => {
    const outcome = find({}, () => Promise.reject(new InstallError('no network')))
    await expect(outcome).rejects.toThrow(new InstallError('Tool is not available: no network. Install it.'))
  })

  test('a fault in an installation is not taken for that', async () => {
    await expect(find({}, () => Promise.reject(new TypeError('a defect')))).rejects.toThrow(new TypeError('a defect'))
  })
})
