#!/usr/bin/env node
import { once } from 'node:events'
import { createRequire } from 'node:module'
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
  const [command = 'serve', ...rest] = args
  switch (command) {
    case 'serve':
      return runServe(rest)
    case 'run':
    case 'vllm-up': {
      const { parseFlags } = await import('./commandline/parse-flags.ts')
      const parsed = parseFlags(rest, help)
      if (parsed.kind === 'invalid') return failWithHelp(parsed.message, command)
      return parsed.values.help ? showHelp(command) : runPlayground(command, [])
    }
    case 'replay':
      return rest.some((name) => name === '--help' || name === '-h') ? showHelp(command) : runPlayground(command, rest)
    case 'help':
    case '--help':
    case '-h':
      return showHelp(rest[0])
    case '--version':
      return print(packageVersion())
    default:
      return command.startsWith('-') ? runServe(args) : showHelp(command)
  }
}

/** Prints a page of the help, or which page was probably meant. */
const showHelp = async (name: string | undefined): Promise<number> => {
  const { findHelpPage } = await import('./help.ts')
  const { isFound, text } = findHelpPage(name)
  return isFound ? print(text) : failWithHelp(text)
}

const runServe = async (args: readonly string[]): Promise<number> => {
  const { parseFlags } = await import('./commandline/parse-flags.ts')
  const parsed = parseFlags(args, serveFlags)
  if (parsed.kind === 'invalid') return failWithHelp(parsed.message, 'serve')
  const { values } = parsed
  if (values.help) return showHelp('serve')
  const { configFileOf, loadConfig } = await import('./config/load-config.ts')
  const loaded = loadConfig({ filePath: values.config })
  const { check, 'print-config': printsConfig } = values
  const { findStartProblems } = await import('./app/find-start-problems.ts')
  const problems = [
    ...(loaded.kind === 'invalid' ? [loaded.problems] : []),
    ...(printsConfig ? [] : await findStartProblems(loaded.groups, check ? 'check' : 'start')).map(loaded.describe),
  ]
  // What a module opened, or a lookup that goes on, must not keep the process.
  if (loaded.kind === 'invalid' || problems.length > 0)
    process.exit(fail(['The configuration is not valid:', ...problems].join('\n')))
  if (printsConfig) {
    const { redactConfig } = await import('./config/redact.ts')
    return print(JSON.stringify(redactConfig(loaded.config), null, 2))
  }
  const { serve, findCreationFault } = await import('./app/serve.ts')
  if (check) {
    const fault = await findCreationFault(loaded.config, packageVersion())
    process.exit(fault === undefined ? print('The configuration is valid.') : fail(fault))
  }
  const filePath = configFileOf(values.config)
  const source = { filePath, load: (previous: Config) => loadConfig({ filePath, previous }) }
  return serve(loaded.config, { version: packageVersion(), untilStopped, source })
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

const print = (text: string): number => {
  process.stdout.write(`${text}\n`)
  return 0
}

const fail = (text: string): number => {
  process.stderr.write(`${text}\n`)
  return 1
}

const failWithHelp = (message: string, command = ''): number =>
  fail(`${message}\nTry: context-cache-gateway help ${command}`.trimEnd())

process.exitCode = await runCommandLine(process.argv.slice(2))
