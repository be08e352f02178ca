import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { transform } from '@swc/core'
import { type ManagedChild, startChild } from '../../../playground/child-process.ts'
import { freePort } from '../../../playground/free-port.ts'
import { packageRoot } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { prints, waitUntilReady } from '../../../playground/wait-until-ready.ts'
import { installPythonSdks } from '../../agents/install-python-sdks.ts'
import { type Block, type Command, commandsOf, printsOf } from './blocks.ts'

/** A shell in a checkout, whose `make run` serves on a port of its own. */
export interface Terminal {
  /** Runs a block. @throws Error when a command fails, or prints something else than the document shows */
  paste(block: Block): Promise<void>
  close(): Promise<void>
}

/** A shown line: numbers and ids in it are examples, and `…` stands for anything. */
const patternOf = (shown: string): RegExp => {
  const pattern = shown.replaceAll(/ctx_[\w-]{32}|\d+|…|[.*+?^${}()|[\]\\]/g, (part) => {
    if (part.startsWith('ctx_')) return String.raw`(?<id>ctx_[\w-]{32})`
    if (part === '…') return '.*'
    return /\d/.test(part) ? String.raw`\d+` : `\\${part}`
  })
  return new RegExp(`^${pattern}`)
}

export const openTerminal = async (): Promise<Terminal> => {
  const root = packageRoot()
  const folder = await mkdtemp(join(tmpdir(), 'docs-'))
  const port = await freePort()
  // Modules are looked for above the program.
  const programs = await mkdir(join(root, '.run'), { recursive: true }).then(() => mkdtemp(join(root, '.run', 'docs-')))
  const env = {
    ...process.env,
    GATEWAY_PORT: String(port),
    XDG_STATE_HOME: folder,
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
  }
  const bin = join(folder, 'bin')
  await mkdir(bin)
  // What runs this test is installed and compiled: to do it again would change files under other tests.
  const made = ['dist/built', 'node_modules/.package-lock.json']
  const make = `PATH='${process.env['PATH']}' exec make ${made.map((file) => `-o ${file}`).join(' ')} "$@"`
  await writeFile(join(bin, 'make'), `#!/bin/sh\n${make}\n`, { mode: 0o755 })

  /** Ids of sessions that a document shows, and those that they stand for. */
  const ids = new Map<string, string>()
  let server: ManagedChild | undefined

  const run = async (command: readonly [string, ...string[]]): Promise<string> => {
    const outcome = await runCommand({ command, env, cwd: root, timeoutMs: 280_000 })
    if (!outcome.ok) throw new Error(`${command.join(' ')}\n${outcome.reason}\n${outcome.stderr}`)
    return outcome.stdout
  }
  const serve = async (text: string): Promise<void> => {
    await server?.stop({ graceMs: 30_000 })
    server = await startChild({ name: 'make run', command: ['bash', '-c', text], env, cwd: root })
    await waitUntilReady(server, prints(/^ready {2}http/))
  }
  const compare = (shown: readonly string[], output: string): void => {
    const lines = output.split('\n').map((line) => line.trimEnd())
    for (const line of shown) {
      const pattern = patternOf(line)
      const at = lines.findIndex((printed) => pattern.test(printed))
      if (at === -1) throw new Error(`The output has no line like "${line}":\n${output}`)
      const [documented] = /ctx_[\w-]{32}/.exec(line) ?? []
      const actual = pattern.exec(lines[at] ?? '')?.groups?.['id']
      if (documented !== undefined && actual !== undefined) ids.set(documented, actual)
      lines.splice(0, at + 1)
    }
  }
  const execute = async ({ text, shown }: Command): Promise<void> => {
    const here = [...ids].reduce((all, [documented, actual]) => all.replaceAll(documented, actual), text)
    if (/\bmake run\b[^\n]*$/.test(here)) return serve(here)
    if (server === undefined && here.includes('localhost:8000')) await serve('make run')
    const script = here.replaceAll('localhost:8000', `localhost:${port}`)
    compare(shown, await run(['bash', '-euo', 'pipefail', '-c', script]))
  }

  return {
    paste: async (block) => {
      const { language, text } = block
      const program = text.replaceAll('localhost:8000', `localhost:${port}`)
      if (language === 'python') {
        await writeFile(join(programs, 'program.py'), program)
        const python = ['env', `PYTHONPATH=${await installPythonSdks()}`, 'python3'] as const
        return compare(printsOf(block), await run([...python, join(programs, 'program.py')]))
      }
      if (language === 'js' || language === 'ts') {
        const { code } = await transform(program, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } })
        await writeFile(join(programs, 'program.mjs'), code)
        return compare(printsOf(block), await run([process.execPath, join(programs, 'program.mjs')]))
      }
      for (const command of commandsOf(block)) await execute(command)
    },
    close: async () => {
      await server?.stop({ graceMs: 30_000 })
      await Promise.all([folder, programs].map((path) => rm(path, { recursive: true, force: true })))
    },
  }
}
