#!/usr/bin/env node
import { createRequire } from 'node:module'
import { parseArgs } from 'node:util'
import type { PlaygroundCommands } from './playground-commands.d.ts'

const usage = `context-cache-gateway [serve] [--config FILE] [--check] [--print-config]
context-cache-gateway run
context-cache-gateway vllm-up
context-cache-gateway replay TRACE [--help]
context-cache-gateway --help | --version

  serve           the gateway alone, for an Envoy configured as in envoy.yaml (default)
    --config FILE   YAML file with options; the environment overrides it
    --check         only check the configuration
    --print-config  print the effective configuration, without secrets
  run             everything on this machine: Envoy, the gateway, and two pods of the embedded engine
    GATEWAY_PORT=8000      where clients connect
    LISTEN_HOST=127.0.0.1  address that accepts clients; 0.0.0.0: all
    ACCELERATOR=1          Envoy with the Wasm filter (deploy/envoy/accelerated.yaml)
    REDIS_URL=redis://…    keep sessions in Redis instead of in memory
    MODEL=file.gguf        serve this model instead of one with random weights
    PODS=host:port,…       use these engines, with CONNECTOR=… and KV_DIR=… (llamacpp-slots) or LMCACHE_URL=… (lmcache)
    ENVOY_BIN=…            the Envoy to run; else the one on PATH; else one is installed into ~/.cache/context-cache-gateway
  vllm-up         real vLLM with LMCache on this machine's processors: two pods, for a gateway with CONNECTOR=lmcache
    PYTHON=python3.11             interpreter of version 3.11 to 3.13; else the first one on PATH
  replay          simulate a trace of requests on a fleet: time to first token, hit ratio, load (replay --help)

Options of serve, for the file (group.field) and the environment:

`

const flags = {
  config: { type: 'string' },
  check: { type: 'boolean', default: false },
  'print-config': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', default: false },
} as const

/** Runs one command and resolves to its exit code. The code of a command is loaded when it is requested. */
const runCommandLine = async (args: readonly string[]): Promise<number> => {
  // `replay` parses its own options.
  if (args[0] === 'replay') return runPlayground('replay', args.slice(1))
  const parsed = parse(args)
  if (parsed.kind === 'invalid') return fail(`${parsed.message}\nTry: context-cache-gateway --help`)
  const { values, command } = parsed
  if (values.help) return print(usage + (await import('./config/options.ts')).renderConfigHelp())
  if (values.version) return print(packageVersion())
  switch (command) {
    case 'run':
    case 'vllm-up':
      return runPlayground(command, args.slice(1))
    case 'serve':
      return runServe(values)
    default:
      return fail(`There is no command ${command}.\nTry: context-cache-gateway --help`)
  }
}

const runServe = async (values: Values): Promise<number> => {
  const { loadConfig } = await import('./config/load-config.ts')
  const loaded = loadConfig({ filePath: values.config })
  const { check, 'print-config': printsConfig } = values
  const { findStartProblems } = await import('./app/find-start-problems.ts')
  const problems = [
    ...(loaded.kind === 'invalid' ? [loaded.problems] : []),
    ...(printsConfig ? [] : await findStartProblems(loaded.groups, { asksRedis: check })).map(loaded.describe),
  ]
  // What a module opened, or a lookup that goes on, must not keep the process of a check.
  const end = (code: number): number => (check ? process.exit(code) : code)
  if (loaded.kind === 'invalid' || problems.length > 0)
    return end(fail(['The configuration is not valid:', ...problems].join('\n')))
  if (printsConfig) {
    const { redactConfig } = await import('./config/redact.ts')
    return print(JSON.stringify(redactConfig(loaded.config), null, 2))
  }
  const { serve, findCreationFault } = await import('./app/serve.ts')
  if (check) {
    const fault = await findCreationFault(loaded.config, packageVersion())
    return end(fault === undefined ? print('The configuration is valid.') : fail(fault))
  }
  return serve(loaded.config, { version: packageVersion(), untilStopped })
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

type Values = ReturnType<typeof parseFlags>['values']

type Parsed =
  | { readonly kind: 'parsed'; readonly command: string; readonly values: Values }
  | { readonly kind: 'invalid'; readonly message: string }

const parseFlags = (args: readonly string[]) => parseArgs({ args: [...args], options: flags, allowPositionals: true })

const parse = (args: readonly string[]): Parsed => {
  try {
    const { values, positionals } = parseFlags(args)
    return { kind: 'parsed', values, command: positionals[0] ?? 'serve' }
  } catch (error) {
    return { kind: 'invalid', message: error instanceof Error ? error.message : String(error) }
  }
}

/** The gateway's version, from package.json. */
const packageVersion = (): string =>
  (createRequire(import.meta.url)('#package.json') as { readonly version: string }).version

/** Resolves with the first SIGINT or SIGTERM. The second one ends the process at once. */
const untilStopped = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    const first = (signal: NodeJS.Signals): void => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) {
        process.off(name, first)
        process.once(name, () => process.exit(1))
      }
      resolve(signal)
    }
    process.once('SIGINT', first)
    process.once('SIGTERM', first)
  })

const print = (text: string): number => {
  process.stdout.write(`${text}\n`)
  return 0
}

const fail = (text: string): number => {
  process.stderr.write(`${text}\n`)
  return 1
}

process.exitCode = await runCommandLine(process.argv.slice(2))
