#!/usr/bin/env node
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import type { Command, CommandContext } from './commands/command.ts'
import type { Config } from './config/config.ts'
import type { PlaygroundCommands } from './playground-commands.d.ts'

const help = { help: { type: 'boolean', short: 'h', default: false } } as const
const serveFlags = {
  ...help,
  config: { type: 'string' },
  check: { type: 'boolean', default: false },
  'print-config': { type: 'boolean', default: false },
} as const

/** Runs one command and resolves to its exit code. The code of a command is loaded when it is requested. */
const runCommandLine = async (args: readonly string[]): Promise<number> => {
  const [name = 'serve', ...rest] = args
  if (name === '--version') return print(packageVersion())
  if (name === 'help' || name === '--help' || name === '-h') return showHelp(rest[0])
  if (Object.hasOwn(commands, name)) return commands[name as keyof typeof commands](rest)
  return name.startsWith('-') ? runServe(args) : showHelp(name)
}

/** Prints a page of the help, or which page was probably meant. */
const showHelp = async (name: string | undefined): Promise<number> => {
  const { findHelpPage } = await import('./help.ts')
  const { isFound, text } = findHelpPage(name)
  return isFound ? print(text) : failUsage(text)
}

const asksForHelp = (args: readonly string[]): boolean => args.some((name) => name === '--help' || name === '-h')

/** A command of operators: a page of help, and code that is loaded when it runs. */
const operate =
  (name: string, load: () => Promise<Command>) =>
  async (args: readonly string[]): Promise<number> => {
    if (asksForHelp(args)) return showHelp(name)
    const command = await load()
    return command({ args, ...surroundings, failUsage: (message) => failUsage(message, name) })
  }

const runServe = async (args: readonly string[]): Promise<number> => {
  const { parseFlags } = await import('./commandline/parse-flags.ts')
  const parsed = parseFlags(args, serveFlags)
  if (parsed.kind === 'invalid') return failUsage(parsed.message, 'serve')
  const { config: file, check, 'print-config': printsConfig, help: showsHelp } = parsed.values
  if (showsHelp) return showHelp('serve')
  const { checkConfig, invalidText, printConfig } = await import('./commands/config.ts')
  if (printsConfig) return printConfig(surroundings, { file })
  // What a module opened, or a lookup that goes on, must not keep the process.
  if (check) process.exit(await checkConfig(surroundings, { file, json: false }))
  const { configFileOf, loadConfig } = await import('./config/load-config.ts')
  const { findStartProblems } = await import('./app/find-start-problems.ts')
  const loaded = loadConfig({ filePath: file })
  const problems = [
    ...(loaded.kind === 'invalid' ? [loaded.problems] : []),
    ...(await findStartProblems(loaded.groups, 'start')).map(loaded.describe),
  ]
  if (loaded.kind === 'invalid' || problems.length > 0) process.exit(fail(invalidText(problems)))
  const { serve } = await import('./app/serve.ts')
  const filePath = configFileOf(file)
  const source = { filePath, load: (previous: Config) => loadConfig({ filePath, previous }) }
  return serve(loaded.config, { version: packageVersion(), untilStopped, source })
}

/** A command of the playground that takes no arguments. */
const play =
  (name: 'run' | 'vllm-up') =>
  async (args: readonly string[]): Promise<number> => {
    const { parseFlags } = await import('./commandline/parse-flags.ts')
    const parsed = parseFlags(args, help)
    if (parsed.kind === 'invalid') return failUsage(parsed.message, name)
    return parsed.values.help ? showHelp(name) : runPlayground(name, [])
  }

/** The playground is not a part of production: it may not be installed. */
const runPlayground = async (command: keyof PlaygroundCommands, args: readonly string[]): Promise<number> => {
  const playground = await import('#playground').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  if (playground === undefined) return fail(`${command} needs the playground, which is not installed here.`)
  return playground.playgroundCommands[command]({ args, env: process.env, print, fail, untilStopped })
}

/** The gateway's version, from package.json. */
const packageVersion = (): string =>
  (createRequire(import.meta.url)('#package.json') as { readonly version: string }).version

const signals = ['SIGINT', 'SIGTERM'] as const
const endAtOnce = (): void => process.exit(1)
// Without a handler the first process of a container ignores them.
for (const name of signals) process.on(name, endAtOnce)

/** Resolves with the next SIGINT or SIGTERM. The one after it, or before this call, ends the process at once. */
const untilStopped = async (): Promise<NodeJS.Signals> => {
  // First on, then off: Node.js drops a signal that has come and not been handled when its last handler goes.
  const stopped = Promise.race(signals.map((name) => once(process, name).then(() => name)))
  for (const name of signals) process.off(name, endAtOnce)
  const signal = await stopped
  for (const name of signals) process.on(name, endAtOnce)
  return signal
}

const print = (line: string): 0 => {
  process.stdout.write(`${line}\n`)
  return 0
}

const fail = (line: string): 1 => {
  process.stderr.write(`${line}\n`)
  return 1
}

const failUsage = (message: string, command = ''): 2 => {
  fail(`${message}\nTry: context-cache-gateway help ${command}`.trimEnd())
  return 2
}

/** What commands of operators use of this process. */
const surroundings: Omit<CommandContext, 'args' | 'failUsage'> = {
  env: process.env,
  version: packageVersion(),
  output: {
    isTerminal: process.stdout.isTTY === true,
    size: () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 }),
    write: (part) => void process.stdout.write(part),
    onResize: (listener) => void process.stdout.on('resize', listener),
  },
  readInput: () => text(process.stdin),
  print,
  fail,
  untilStopped,
}

const commands = {
  serve: runServe,
  run: play('run'),
  'vllm-up': play('vllm-up'),
  replay: async (args: readonly string[]) => (asksForHelp(args) ? showHelp('replay') : runPlayground('replay', args)),
  sessions: operate('sessions', async () => (await import('./commands/sessions.ts')).sessionsCommand),
  tenants: operate('tenants', async () => (await import('./commands/tenants.ts')).tenantsCommand),
  pods: operate('pods', async () => (await import('./commands/pods.ts')).podsCommand),
  top: operate('top', async () => (await import('./commands/top.ts')).topCommand),
  doctor: operate('doctor', async () => (await import('./commands/doctor/doctor.ts')).doctorCommand),
  config: async (args: readonly string[]) => {
    const code = await operate('config', async () => (await import('./commands/config.ts')).configCommand)(args)
    // As for `serve --check`.
    process.exit(code)
  },
}

// The reader of a pipe has what it wants, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.exitCode = await runCommandLine(process.argv.slice(2))
