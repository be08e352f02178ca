import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { findTool, type ToolRecipe } from '../../../../playground/launcher/find-tool.ts'
import { InstallError } from '../../../../playground/launcher/install-once.ts'
import { type Environment, requireTool, ToolUnavailableError } from '../../../../playground/launcher/server-tool.ts'

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
    judge: (output) => (output.startsWith('good') ? { ok: true, version: '2.0' } : { ok: false, reason: 'too old' }),
    directory: join(folder, 'tools', 'tool'),
    install: (into) => {
      installs += 1
      return install(into)
    },
    installedCommand: async (directory) => [join(directory, 'tool')],
  })
  const installGood: ToolRecipe['install'] = async (into) => {
    await writeFile(join(into, 'tool'), '#!/bin/sh\necho good\n')
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
    const named = await put('named', 'echo good')
    await put('bin/tool', 'echo good')
    expect(await find({ TOOL_BIN: named, PATH: join(folder, 'bin') })).toEqual({
      found: true,
      tool: { command: [named], version: '2.0', origin: 'variable' },
    })
  })

  test.each([
    { name: 'cannot be run', script: undefined, reason: /TOOL_BIN=\S+ cannot be used \(.*ENOENT\)\. Install it\.$/ },
    { name: 'is too old', script: 'echo bad', reason: /TOOL_BIN=\S+ cannot be used \(too old\)\. Install it\.$/ },
    { name: 'fails', script: 'echo broken >&2; exit 3', reason: /cannot be used \(.*broken\)\. Install it\.$/ },
  ])('a named file that $name is the answer, whatever else there is', async ({ script, reason }) => {
    const named = script === undefined ? join(folder, 'none') : await put('named', script)
    await put('bin/tool', 'echo good')
    const outcome = await find({ TOOL_BIN: named, PATH: join(folder, 'bin') })
    expect(outcome).toEqual({ found: false, reason: expect.stringMatching(reason) })
    expect(installs).toBe(0)
  })

  test('an empty variable counts as none, and PATH is searched in order', async () => {
    const first = await put('one/tool', 'echo good')
    await put('two/tool', 'echo good')
    const outcome = await find({
      TOOL_BIN: '',
      PATH: `relative:${join(folder, 'none')}:${dirname(first)}:${join(folder, 'two')}`,
    })
    expect(requireTool(outcome)).toEqual({ command: [first], version: '2.0', origin: 'path' })
  })

  test('one on PATH that is too old is passed over, and that is said', async () => {
    const old = await put('bin/tool', 'echo bad')
    const outcome = await find({ PATH: dirname(old) })
    expect(requireTool(outcome).origin).toBe('installed')
    expect(lines).toEqual([
      `Tool: ${old} is passed over (too old)`,
      `Tool: installing into ${join(folder, 'tools', 'tool')}`,
    ])
  })

  test('a second search installs nothing and says nothing', async () => {
    await find({})
    lines = []
    expect(requireTool(await find({})).origin).toBe('installed')
    expect({ installs, lines }).toEqual({ installs: 1, lines: [] })
  })

  test('an installed copy that stopped working is replaced', async () => {
    await find({})
    await put('tools/tool/tool', 'exit 1')
    expect(requireTool(await find({})).version).toBe('2.0')
    expect(installs).toBe(2)
  })

  test('a new copy that does not work is not tried again', async () => {
    const outcome = await find({}, async (into) => writeFile(join(into, 'tool'), ''))
    expect(outcome).toEqual({ found: false, reason: expect.stringMatching(/the installed copy cannot be used \(.*\)/) })
    expect(installs).toBe(1)
  })

  test('an installation that is not possible is a reason of one line', async () => {
    const outcome = await find({}, () => Promise.reject(new InstallError('no network')))
    expect(outcome).toEqual({ found: false, reason: 'Tool cannot be had: no network. Install it.' })
    expect(() => requireTool(outcome)).toThrow(new ToolUnavailableError('Tool cannot be had: no network. Install it.'))
  })

  test('a fault in an installation is not taken for that', async () => {
    await expect(find({}, () => Promise.reject(new TypeError('a defect')))).rejects.toThrow('a defect')
  })
})
