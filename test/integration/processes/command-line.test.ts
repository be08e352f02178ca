import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'

const root = fileURLToPath(new URL('../../../', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the compiled command line to its end, with these variables alone. */
const run = (
  args: readonly string[],
  options: { readonly packageRoot?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const { packageRoot = root, env = {} } = options
    const child = spawn(process.execPath, [join(packageRoot, 'dist/src/main.js'), ...args], { env })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })

describe('context-cache-gateway', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'command-line-'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true })
  })

  /** The least configuration. */
  const valid = (): Readonly<Record<string, string>> => ({ PODS: '127.0.0.1:1', KV_DIR: folder })

  test('--version prints the version without loading any dependency', async () => {
    // Without node_modules an import of any dependency would fail.
    await cp(join(root, 'package.json'), join(folder, 'package.json'))
    await cp(join(root, 'dist/src'), join(folder, 'dist/src'), { recursive: true })
    expect(await run(['--version'], { packageRoot: folder })).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: '',
    })
  })

  test.each([
    { args: ['--help'], begins: 'Usage: context-cache-gateway [COMMAND]' },
    { args: ['serve', '--help'], begins: 'Usage: context-cache-gateway [serve]' },
    { args: ['run', '-h'], begins: 'Usage: context-cache-gateway run' },
    { args: ['help', 'vllm-up'], begins: 'Usage: context-cache-gateway vllm-up' },
    { args: ['help', 'replay'], begins: 'Usage: context-cache-gateway replay TRACE' },
    { args: ['help', 'kv'], begins: 'Options of serve, group kv:' },
  ])('$args prints its page', async ({ args, begins }) => {
    const { code, stdout, stderr } = await run(args)
    expect({ code, stderr, begin: stdout.slice(0, begins.length) }).toEqual({ code: 0, stderr: '', begin: begins })
  })

  test.each([
    [['sevre'], 'There is no command sevre. Did you mean serve?\nTry: context-cache-gateway help\n'],
    [['--chekc'], 'There is no option --chekc. Did you mean --check?\nTry: context-cache-gateway help serve\n'],
    [['run', '--check'], 'There is no option --check.\nTry: context-cache-gateway help run\n'],
    [['run', 'now'], 'The argument now is one too many.\nTry: context-cache-gateway help run\n'],
  ])('%s is refused with what was probably meant', async (args, stderr) => {
    expect(await run(args)).toEqual({ code: 1, stdout: '', stderr })
  })

  test('--check accepts a valid configuration', async () => {
    expect(await run(['--check'], { env: valid() })).toEqual({
      code: 0,
      stdout: 'The configuration is valid.\n',
      stderr: '',
    })
  })

  test('--check refuses a Redis URL that the client cannot read, and does not print it', async () => {
    const env = { ...valid(), REDIS_URL: 'redis://:hid#den@host', CTX_TENANT_SECRET: 'x'.repeat(32) }
    const ended = await run(['--check'], { env })
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('sessions.redisUrl') })
    expect(ended.stderr).not.toContain('hid')
  })

  test('serve logs one line and exits with 1 when a part cannot be created', async () => {
    const { code, stdout, stderr } = await run([], {
      env: { ...valid(), CTX_KV_STORE_MODULE: join(folder, 'none.mjs') },
    })
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({
      level: 'fatal',
      msg: 'the gateway could not start',
      err: { message: expect.stringContaining('none.mjs') },
    })
  })
})
