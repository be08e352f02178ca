import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { findTool, requireTool, type ToolRecipe } from '../../../../playground/install/find-tool.ts'
import { InstallError } from '../../../../playground/install/install-once.ts'
import type { Environment } from '../../../../playground/run-command.ts'

describe('findTool', () => {
  let folder = ''
  let lines: string[] = []
  let installs = 0

  /** A program that answers `--version`. */
  const put = async (path: string, script: string): Promise<string> => {
    const file = join(folder, path)
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
    directory: join(folder, 'tools', 'tool'),
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
    findTool(recipe(install), { env, toolsDir: join(folder, 'tools'), report: (line) => lines.push(line) })

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'launcher-'))
    lines = []
    installs = 0
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test('the file named by the variable comes first', async () => {
    const named = await put('named', 'echo v2.0')
    await put('bin/tool', 'echo v2.0')
    expect(await find({ TOOL_BIN: named, PATH: join(folder, 'bin') })).toEqual({
      found: true,
      tool: { command: [named], version: '2.0', origin: 'variable' },
    })
  })

  test.each([
    { name: 'cannot be run', script: undefined, reason: /\S+ cannot be used \(.*ENOENT\)\. Install it\.$/ },
    {
      name: 'is too old',
      script: 'echo v1.9',
      reason: /\S+ cannot be used \(it is 1\.9, 2\.0 is needed\)\. Install it\.$/,
    },
    { name: 'fails', script: 'echo broken >&2; exit 3', reason: /cannot be used \(.*broken\)\. Install it\.$/ },
  ])('a named file that $name is the answer, whatever else there is', async ({ script, reason }) => {
    const named = script === undefined ? join(folder, 'none') : await put('named', script)
    await put('bin/tool', 'echo v2.0')
    const outcome = await find({ TOOL_BIN: named, PATH: join(folder, 'bin') })
    expect(outcome).toEqual({ found: false, reason: expect.stringMatching(reason) })
    expect(installs).toBe(0)
  })

  test('an empty variable counts as none, and PATH is searched in order', async () => {
    const first = await put('one/tool', 'echo v2.0')
    await put('two/tool', 'echo v2.0')
    const outcome = await find({
      TOOL_BIN: '',
      PATH: `relative:${join(folder, 'none')}:${dirname(first)}:${join(folder, 'two')}`,
    })
    expect(requireTool(outcome)).toEqual({ command: [first], version: '2.0', origin: 'path' })
  })

  test('one on PATH that is too old is passed over, and that is said', async () => {
    const old = await put('bin/tool', 'echo v1.9')
    const outcome = await find({ PATH: dirname(old) })
    expect(requireTool(outcome).origin).toBe('installed')
    expect(lines).toEqual([
      `Tool is not available: ${old} cannot be used (it is 1.9, 2.0 is needed). Install it.`,
      `Tool: installing into ${join(folder, 'tools', 'tool')}`,
    ])
  })

  test('a second search installs nothing and says nothing', async () => {
    await find({})
    lines = []
    expect(requireTool(await find({})).origin).toBe('installed')
    expect({ installs, lines }).toEqual({ installs: 1, lines: [] })
  })

  test('a new copy that does not work is not tried again', async () => {
    const outcome = await find({}, async (into) => writeFile(join(into, 'tool'), ''))
    expect(outcome).toEqual({ found: false, reason: expect.stringMatching(/cannot be used \(.*\)/) })
    expect(installs).toBe(1)
  })

  test('an installation that is not possible is a reason of one line', async () => {
    const outcome = await find({}, () => Promise.reject(new InstallError('no network')))
    expect(outcome).toEqual({ found: false, reason: 'Tool is not available: no network. Install it.' })
    expect(() => requireTool(outcome)).toThrow(new InstallError('Tool is not available: no network. Install it.'))
  })

  test('a fault in an installation is not taken for that', async () => {
    await expect(find({}, () => Promise.reject(new TypeError('a defect')))).rejects.toThrow('a defect')
  })
})
