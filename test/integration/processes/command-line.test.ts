import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { runCommandLine } from '../../support/run-command-line.ts'
import { startTestRedis } from '../../support/test-redis.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

describe('context-cache-gateway', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'command-line-'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true })
  })

  /** The least configuration, on free ports. */
  const valid = (): Readonly<Record<string, string>> => ({
    PODS: '127.0.0.1:1',
    KV_DIR: folder,
    CTX_LISTEN_EXTPROC_PORT: '0',
    CTX_LISTEN_ADMIN_PORT: '0',
  })

  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }

  const invalid = (...problems: readonly string[]): string =>
    ['The configuration is not valid:', ...problems, ''].join('\n')

  test('--version prints the version without loading any dependency', async () => {
    // Without node_modules an import of any dependency would fail.
    await cp(join(root, 'package.json'), join(folder, 'package.json'))
    await cp(join(root, 'dist/src'), join(folder, 'dist/src'), { recursive: true })
    expect(await runCommandLine(['--version'], { packageRoot: folder })).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: '',
    })
  })

  test.each([
    { args: ['--help'], begins: 'Usage: context-cache-gateway [COMMAND]' },
    { args: ['serve', '--help'], begins: 'Usage: context-cache-gateway [serve]' },
    { args: ['run', '-h'], begins: 'Usage: context-cache-gateway run' },
    { args: ['config', '--help'], begins: 'Usage: context-cache-gateway config check' },
    { args: ['sessions', 'ls', '--help'], begins: 'Usage: context-cache-gateway sessions ls' },
    { args: ['help', 'kv'], begins: 'Options of serve, group kv:' },
  ])('$args prints its page', async ({ args, begins }) => {
    const { code, stdout, stderr } = await runCommandLine(args)
    expect({ code, stderr, begin: stdout.slice(0, begins.length) }).toEqual({ code: 0, stderr: '', begin: begins })
  })

  test.each([
    [['sevre'], 'There is no command sevre. Did you mean serve?\nTry: context-cache-gateway help\n'],
    [['--chekc'], 'There is no option --chekc. Did you mean --check?\nTry: context-cache-gateway help serve\n'],
    [['run', '--check'], 'There is no option --check.\nTry: context-cache-gateway help run\n'],
    [['config'], 'Say what to do: check, print, schema.\nTry: context-cache-gateway help config\n'],
    [['config', 'chek'], 'There is no action chek. Did you mean check?\nTry: context-cache-gateway help config\n'],
    [['run', 'now'], 'The argument now is one too many.\nTry: context-cache-gateway help run\n'],
  ])('%s is refused with what was probably meant', async (args, stderr) => {
    expect(await runCommandLine(args)).toEqual({ code: 2, stdout: '', stderr })
  })

  test('--check accepts a valid configuration', async () => {
    expect(await runCommandLine(['--check'], { env: valid() })).toEqual({
      code: 0,
      stdout: 'The configuration is valid.\n',
      stderr: '',
    })
  })

  test('--check reports every problem of one run in a line of its own', async () => {
    const [one, other] = await Promise.all([makeCertificate('one'), makeCertificate('other')])
    const nothing = join(folder, 'none')
    const env = {
      PODS: '127.0.0.1:1',
      CTX_LISTEN_EXTPROC_TLS_CERTIFICATE: await write('cert', one.cert),
      CTX_LISTEN_EXTPROC_TLS_KEY: await write('key', other.key),
      CTX_LISTEN_EXTPROC_TLS_CLIENT_CA: nothing,
      CTX_TENANT_SECRET_FILE: nothing,
      REDIS_URL: 'redis://:hidden@127.0.0.1:1',
      CTX_ENGINES_HTTPS: 'true',
      CTX_ENGINES_CA_FILE: await write('ca', 'no certificate'),
      CTX_CONFIG_FILE: await write(
        'config.yaml',
        `kv:\n  directory: ${await write('file', '')}\n  storeModule: ${await write('store.mjs', '')}\n` +
          `pools:\n- name: own\n  pods: [127.0.0.1:2]\n  kv: { connectorModule: ${nothing} }\n` +
          `- { name: cluster, kubernetes: { service: a, kubeconfigFile: ${nothing} }, kv: { connector: none } }\n`,
      ),
    }
    const { stderr, ...ended } = await runCommandLine(['--check'], { env })
    const lines = stderr.replaceAll(`${folder}/`, '').trimEnd().split('\n').sort()
    expect({ ...ended, lines }).toEqual({
      code: 1,
      stdout: '',
      lines: [
        'CTX_ENGINES_CA_FILE: engines.caFile = "ca": cannot be used (error:0480006C:PEM routines::no start line)',
        'CTX_LISTEN_EXTPROC_TLS_CERTIFICATE: listen.extproc.tls.certificate = "cert": cannot be used (it does not belong to listen.extproc.tls.key)',
        'CTX_LISTEN_EXTPROC_TLS_CLIENT_CA: listen.extproc.tls.clientCa = "none": cannot be used (ENOENT: no such file or directory)',
        'CTX_TENANT_SECRET_FILE: tenant.secretFile = "none": cannot be read (ENOENT: no such file or directory)',
        'REDIS_URL: sessions.redisUrl: Redis cannot be used (connect ECONNREFUSED 127.0.0.1:1)',
        'The configuration is not valid:',
        'config.yaml:2: kv.directory (CTX_KV_DIRECTORY or KV_DIR) = "file": cannot be used (ENOTDIR: not a directory)',
        'config.yaml:3: kv.storeModule (CTX_KV_STORE_MODULE) = "store.mjs": cannot be used (store.mjs does not export a function createArtefactStore)',
        'config.yaml:7: pools.0.kv.connectorModule (CTX_POOLS) = "none": cannot be used (Cannot find module \'none\')',
        'config.yaml:8: pools.1.kubernetes.kubeconfigFile (CTX_POOLS) = "none": cannot be used (ENOENT: no such file or directory)',
      ],
    })
  })

  test('--check accepts the options of a gateway that runs, and serve does not start with them', async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const env = { ...valid(), CTX_LISTEN_EXTPROC_PORT: `${port}`, CTX_LISTEN_ADMIN_PORT: `${adminPort}` }
    const running = spawn(process.execPath, [join(root, 'dist/src/main.js')], { env })
    const ended = once(running, 'close')
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${adminPort}/readyz`)).status).toBeDefined())
    const checked = await runCommandLine(['--check'], { env })
    const { stderr } = await runCommandLine(['serve'], { env })
    running.kill()
    await ended
    expect(checked).toEqual({ code: 0, stdout: 'The configuration is valid.\n', stderr: '' })
    expect(stderr).toContain(`CTX_LISTEN_EXTPROC_PORT: listen.extproc.port = ${port}: cannot be listened on`)
    expect(stderr).toContain(`CTX_LISTEN_ADMIN_PORT: listen.admin.port = ${adminPort}: cannot be listened on`)
  })

  test('a module that fails is named by --check and by serve, without a stack', async () => {
    const store = `setInterval(() => {}, 1000)\nexport const createArtefactStore = () => { throw new Error('no URL') }`
    const env = { ...valid(), CTX_KV_STORE_MODULE: await write('store.mjs', store) }
    const stderr = 'the gateway could not start: no URL\n'
    expect(await runCommandLine(['--check'], { env })).toEqual({ code: 1, stdout: '', stderr })
    const served = await runCommandLine(['serve'], { env })
    expect(served).toMatchObject({ code: 1, stderr: '' })
    expect(JSON.parse(served.stdout)).toMatchObject({ msg: 'the gateway could not start', cause: 'no URL' })
  })

  test('serve ends by a signal before it has started', async () => {
    const endless = 'console.log("loading")\nsetInterval(() => {}, 1000)\nawait new Promise(() => {})'
    const env = { ...valid(), CTX_KV_STORE_MODULE: await write('store.mjs', endless) }
    expect(await runCommandLine(['serve'], { env, until: 'loading' })).toMatchObject({ code: 1, stderr: '' })
  })

  test('serve refuses what it cannot use, also a module that goes on', async () => {
    const store = await write('store.mjs', 'setInterval(() => {}, 1000)')
    const listen = { CTX_LISTEN_ADMIN_HOST: '192.0.2.1', CTX_LISTEN_ADMIN_PORT: '' }
    const env = { ...valid(), ...listen, KV_DIR: '/none', CTX_KV_STORE_MODULE: store }
    const stderr = invalid(
      'CTX_LISTEN_ADMIN_HOST: listen.admin.host = "192.0.2.1": cannot be listened on (listen EADDRNOTAVAIL: address not available 192.0.2.1:9090)',
      `CTX_KV_STORE_MODULE: kv.storeModule = "${store}": cannot be used (${store} does not export a function createArtefactStore)`,
      'KV_DIR: kv.directory = "/none": cannot be used (ENOENT: no such file or directory)',
    )
    expect(await runCommandLine(['serve'], { env })).toEqual({ code: 1, stdout: '', stderr })
  })

  test('serve goes on while its log cannot be written, and ends when it is told to', async () => {
    const command = ['-c', 'exec "$0" "$1" > /dev/full', process.execPath, join(root, 'dist/src/main.js')]
    const adminPort = String(await freePort())
    const child = spawn('/bin/sh', command, { env: { ...valid(), CTX_LISTEN_ADMIN_PORT: adminPort } })
    const ended = once(child, 'close')
    const isServing = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${adminPort}/healthz`)).ok
    await eventually(async () => expect(await isServing()).toBe(true))
    child.kill()
    expect(await ended).toEqual([0, null])
  })

  test('serve warns once of a Redis that it does not use, of an open port, and of an engine that does not answer', async () => {
    const env = {
      ...valid(),
      CTX_LISTEN_EXTPROC_HOST: '0.0.0.0',
      CTX_SESSIONS_STORE: 'memory',
      REDIS_URL: 'redis://:hidden@127.0.0.1:1',
    }
    const { stdout } = await runCommandLine(['serve'], { env, until: '"ready"' })
    expect(stdout).not.toContain('hidden')
    expect(stdout.match(/"level":"warn".*/g)).toEqual([
      expect.stringContaining('Redis is not used'),
      expect.stringContaining('Whoever reaches the gRPC port'),
      expect.stringContaining('The engine 127.0.0.1:1 is unavailable'),
    ])
  })

  test('a Redis that refuses the password is named by --check, and by serve in one sentence', async () => {
    const redis = await startTestRedis()
    await redis.raw.config('SET', 'requirepass', 'right')
    const url = redis.server.url.replace('//', '//:wrong@')
    const env = { ...valid(), REDIS_URL: url, CTX_TENANT_SECRET: 'x'.repeat(32) }
    const cause = 'WRONGPASS invalid username-password pair or user is disabled.'
    expect(await runCommandLine(['--check'], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr: invalid(`REDIS_URL: sessions.redisUrl: Redis cannot be used (${cause})`),
    })
    const { stdout } = await runCommandLine(['serve'], { env, until: '"ready"' })
    await redis.close()
    expect(stdout.split('\n').filter((line) => line.includes('WRONGPASS'))).toEqual([
      expect.stringContaining(`"msg":"The session store is unavailable: ${cause}"`),
      expect.stringContaining(`"cause":"Redis refused get: ${cause}","msg":"costs were not loaded or saved"`),
    ])
    expect(stdout).not.toContain('stack')
  })
})
