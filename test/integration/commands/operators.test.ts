import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { createPrefixProxy } from '../../support/prefix-proxy.ts'
import { type Ended, runCommandLine } from '../../support/run-command-line.ts'
import { runInProcess } from '../../support/run-in-process.ts'
import { createdId, unknownId } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const token = 'a-token-of-the-operators-that-is-long-enough'
const { stack } = useScriptedStack({ podCount: 2, env: { CTX_LISTEN_ADMIN_TOKEN: token } })

const withToken = (): Readonly<Record<string, string>> => ({
  CONTEXT_CACHE_ADMIN_URL: stack.gateway().adminUrl,
  CONTEXT_CACHE_ADMIN_TOKEN: token,
})
const run = (args: readonly string[]): Promise<Ended> => runInProcess(args, { env: withToken() })

const apiText = async (path: string): Promise<string> => {
  const answer = await fetch(`${stack.gateway().adminUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })
  return answer.text()
}

describe('sessions', () => {
  test('lists, shows and deletes a session', async () => {
    const id = await createdId(stack)
    const { data } = JSON.parse(await apiText('/api/sessions'))
    const { digest, model }: { readonly digest: string; readonly model: string } = data[0]

    const listed = await run(['sessions', 'ls', '--model', model])
    expect(listed).toMatchObject({ code: 0, stderr: '' })
    expect(listed.stdout).toMatch(/^SESSION +MODEL +TENANT +NAMED BY +TURNS +PROMPT +CACHED +STORED +POD +ENDS\n/)
    expect(listed.stdout).toMatch(new RegExp(`\\n${digest} +${model} +[\\w-]{22} `))
    expect(await run(['sessions', 'ls', '--model', 'other'])).toEqual({ code: 0, stdout: 'No sessions.\n', stderr: '' })

    // The end of the create reaches the timeline a little later.
    await eventually(async () => {
      const { code, stdout } = await runCommandLine(['sessions', 'get', '-'], { env: withToken(), input: `${id}\n` })
      expect({ code, begins: stdout.slice(0, 18) }).toEqual({ code: 0, begins: `session   ${digest}` })
      expect(stdout).toMatch(/\nAT +EVENT +POD .*\n.* created .*\n.* turn completed +127\.0\.0\.1:\d+/)
      expect(stdout).not.toContain(id)
    })

    expect(await run(['sessions', 'rm', id])).toEqual({ code: 0, stdout: 'The session is deleted.\n', stderr: '' })
    expect(await run(['sessions', 'get', id])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/has this id/),
    })
  })

  test('pages, and prints what the API says with --json', async () => {
    await Promise.all([createdId(stack), createdId(stack)])
    const { stdout, code } = await run(['sessions', 'ls', '--limit', '1'])
    expect(code).toBe(0)
    const next = /\n\nThere are more: --after (\S+)\n$/.exec(stdout)?.[1] ?? ''
    expect((await run(['sessions', 'ls', '--limit', '1', '--after', next])).stdout.split('\n')[1]).toMatch(/^[\w-]{8} /)

    expect((await run(['sessions', 'ls', '--json'])).stdout).toBe(await apiText('/api/sessions'))
    expect(await run(['sessions', 'rm', unknownId, '--json'])).toMatchObject({ code: 1, stdout: '' })
  })

  test('shows what a tenant uses, and erases all of it', async () => {
    await createdId(stack)
    const { data } = JSON.parse(await apiText('/api/sessions'))
    const { tenant }: { readonly tenant: string } = data[0]
    const sessions = data.length

    expect((await run(['tenants', 'get', '--', tenant])).stdout).toMatch(
      new RegExp(`\\nsessions +${sessions}, of them named 0\\n`),
    )
    expect(await run(['tenants', 'erase', '--', tenant])).toMatchObject({
      code: 0,
      stdout: `Erased: ${sessions} sessions, 0 cached answers of this gateway.\n`,
    })
    expect((await run(['sessions', 'ls'])).stdout).toBe('No sessions.\n')
  })

  test.each([
    [['tenants', 'get', 'short'], 'Give the digest of a tenant: the 22 characters that sessions ls shows.'],
    [['sessions'], 'Say what to do: ls, get, rm.'],
    [['sessions', 'lss'], 'There is no action lss. Did you mean ls?'],
    [['sessions', 'get'], 'Give the id of a session (ctx_…), or - to read it from standard input.'],
    [['sessions', 'get', 'secret'], 'Give the id of a session (ctx_…), or - to read it from standard input.'],
    [['sessions', 'ls', '--limit', '0'], '--limit is 1 to 100.'],
    [['sessions', 'get', unknownId, '--model', 'x'], '--model belongs to sessions ls.'],
  ])('%j is wrong usage', async (args, message) => {
    expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `${message}\n` })
  })
})

describe('pods and top', () => {
  test('show each pod', async () => {
    const { code, stdout } = await run(['pods'])
    const lines = stdout.trimEnd().split('\n')
    expect({ code, count: lines.length }).toEqual({ code: 0, count: 3 })
    expect(lines[0]).toMatch(
      /^POOL +POD +READY +RUNNING +SESSIONS +LOADS +TURNS +HITS +LOAD P50 ms +CONNECTOR +MODELS$/,
    )
    for (const [index, pod] of stack.pods.entries())
      expect(lines[index + 1]).toMatch(new RegExp(`^default +${pod.address} +yes +\\d+ .* none `))
    expect((await run(['pods', '--json'])).stdout).toBe(await apiText('/api/pods'))
  })

  test('top prints once where there is no terminal', async () => {
    const { code, stdout } = await runCommandLine(['top'], { env: withToken() })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Context Cache Gateway \d.*store memory\n\nnow +turns \d/)
    expect(stdout).not.toContain('\x1b')
    expect(stdout).toContain(stack.pods[1]?.address)
  })

  test('top --json prints an object on each line until it is stopped, and once with --once', async () => {
    const { stdout } = await runCommandLine(['top', '--json'], { env: withToken(), until: '}\n{' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(1)
    for (const line of [...lines, (await run(['top', '--json', '--once'])).stdout])
      expect(JSON.parse(line)).toMatchObject({
        overview: { store: { kind: 'memory' } },
        pods: { pools: [{ name: 'default' }] },
      })
  })

  test('top draws within the terminal, anew every second, and leaves it as it was', async () => {
    const written: string[] = []
    let stop: () => void = () => undefined
    const stopped = new Promise<void>((resolve) => {
      stop = resolve
    })
    const frames = (): readonly string[] => written.filter((text) => text.startsWith('\x1b[H'))
    const output = {
      isTerminal: true,
      size: () => ({ columns: 30, rows: 11 }),
      write: (text: string) => {
        written.push(text)
        if (frames().length === 2) stop()
      },
    }

    const { code } = await runInProcess(['top'], { env: withToken(), output, untilStopped: () => stopped })
    expect(code).toBe(0)
    expect([written[0], written.at(-1)]).toEqual(['\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l'])
    for (const frame of frames()) {
      const text = ['\x1b[H', '\x1b[K', '\x1b[J'].reduce((rest, code) => rest.replaceAll(code, ''), frame)
      const lines = text.split('\r\n')
      expect(lines).toHaveLength(11)
      expect(Math.max(...lines.map(({ length }) => length))).toBe(30)
    }
  })
})

describe('the admin port', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'operators-'))
    await writeFile(join(folder, 'token'), `${token}\n`)
  })
  afterAll(() => rm(folder, { recursive: true }))

  test('may have a path before its pages, and the token may be in a file', async () => {
    const proxy = await createPrefixProxy(stack.gateway().adminUrl)
    await proxy.start()
    const args = ['--admin', `${proxy.url}/`, '--token-file', join(folder, 'token')]
    const { stdout } = await runInProcess(['pods', '--json', ...args])
    await proxy.stop()
    expect(stdout).toBe(await apiText('/api/pods'))
  })

  test.each([
    ['asks for a token', {}, /^The gateway asks for its token .* CONTEXT_CACHE_ADMIN_TOKEN, or --token-file FILE\.\n$/],
    ['refuses a wrong one', { CONTEXT_CACHE_ADMIN_TOKEN: 'wrong' }, /^The gateway does not accept the token: .*\n$/],
    [
      'is not there',
      { CONTEXT_CACHE_ADMIN_URL: 'http://127.0.0.1:1' },
      /^http:\/\/127\.0\.0\.1:1 does not answer: .*ECONNREFUSED.*\nIs a gateway's admin port there/,
    ],
  ])('%s: every command says what to do', async (_what, env, stderr) => {
    for (const args of [['pods'], ['sessions', 'ls'], ['top', '--json']]) {
      const admin = { CONTEXT_CACHE_ADMIN_URL: stack.gateway().adminUrl }
      const ended = await runInProcess(args, { env: { ...admin, ...env } })
      expect(ended).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(stderr) })
    }
  })

  test.each([
    ['--admin', 'localhost:9090', '--admin localhost:9090: must be http://host:port'],
    ['--token-file', '/nowhere', "--token-file: ENOENT: no such file or directory, open '/nowhere'"],
  ])('%s %s is wrong usage', async (flag, value, message) => {
    const stderr = `${message}\nTry: context-cache-gateway help pods\n`
    expect(await runCommandLine(['pods', flag, value])).toEqual({ code: 2, stdout: '', stderr })
  })
})
