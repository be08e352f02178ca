import { parseArgs } from 'node:util'
import type { Config } from '../config/config.ts'
import { renderConfigHelp } from '../config/describe-config.ts'
import { loadConfig } from '../config/load-config.ts'
import { processEnvironment } from '../config/process-environment.ts'
import { redactConfig } from '../config/redact-config.ts'
import type { PlaygroundCommands } from '../playground-commands.d.ts'
import { createLogger } from '../telemetry/logger.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createApp } from './create-app.ts'
import { packageVersion } from './package-version.ts'
import { untilSignalled } from './signals.ts'

const usage = `context-cache-gateway [serve] [--config FILE] [--check] [--print-config]
context-cache-gateway run
context-cache-gateway vllm-up
context-cache-gateway replay TRACE [--help]
context-cache-gateway --help | --version

  serve           the gateway alone, for an Envoy that is configured as in envoy.yaml (default)
    --config FILE   YAML file with options; the environment goes before it
    --check         only check the configuration
    --print-config  print the configuration in force, without secrets, and leave
  run             everything on this machine: Envoy, the gateway, and two pods of the embedded engine
    GATEWAY_PORT=8000      where clients connect
    LISTEN_HOST=127.0.0.1  the address it accepts clients on; 0.0.0.0 for all
    ACCELERATOR=1          Envoy with the Wasm filter (deploy/envoy/accelerated.yaml)
    REDIS_URL=redis://…    keep sessions in Redis instead of in memory
    MODEL=file.gguf        serve a model of yours instead of one with random weights
    PODS=host:port,…       use engines of yours, with CONNECTOR=… and KV_DIR=… (llamacpp-slots) or LMCACHE_URL=… (lmcache)
    ENVOY_BIN=…            an Envoy of yours; else the one on PATH; else one is installed into ~/.cache/context-cache-gateway
  vllm-up         real vLLM with LMCache on this machine's processors: two pods, for a gateway with CONNECTOR=lmcache
    PYTHON=python3.11             an interpreter of version 3.11 to 3.13; else the first one on PATH
    FLEET_POD_PORTS=8101,8102     where the pods listen, and with them how many there are
    FLEET_LMCACHE_PORTS=9101,9102, FLEET_COORDINATOR_PORT=9200
  replay          how a trace of requests would fare on a fleet: time to first token, hit ratio, load (replay --help)

Options of serve, for the file (group.field) and the environment:

`

const flags = {
  config: { type: 'string' },
  check: { type: 'boolean', default: false },
  'print-config': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', default: false },
} as const

/** Runs one command; resolves to the exit code when it has ended. */
export const runCommandLine = async (args: readonly string[]): Promise<number> => {
  // It has options of its own.
  if (args[0] === 'replay') return runPlayground('replay', args.slice(1))
  const parsed = parse(args)
  if (parsed.kind === 'invalid') return fail(`${parsed.message}\nTry: context-cache-gateway --help`)
  const { values, command } = parsed
  if (values.help) return print(usage + renderConfigHelp())
  if (values.version) return print(packageVersion())
  switch (command) {
    case 'run':
    case 'vllm-up':
      return runPlayground(command, args.slice(1))
    case 'serve': {
      const loaded = loadConfig({ filePath: values.config })
      if (loaded.kind === 'invalid') return fail(`The configuration is not valid:\n${loaded.problems}`)
      if (values['print-config']) return print(JSON.stringify(redactConfig(loaded.config), null, 2))
      return values.check ? print('The configuration is valid.') : serve(loaded.config)
    }
    default:
      return fail(`There is no command ${command}.\nTry: context-cache-gateway --help`)
  }
}

/** Commands for trying things out are no part of production: an image may leave them away. */
const runPlayground = async (command: keyof PlaygroundCommands, args: readonly string[]): Promise<number> => {
  const playground = await import('#playground').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  if (playground === undefined) return fail(`${command} needs the playground, which is not installed here.`)
  const env = processEnvironment()
  return playground.playgroundCommands[command]({ args, env, print, fail, note, untilStopped: untilSignalled })
}

const serve = async (config: Config): Promise<number> => {
  const log = createLogger({ level: config.log.level })
  const version = packageVersion()
  const app = await createApp(config, { log, metrics: createMetrics({ version }), version })
  const stopped = untilSignalled()
  try {
    const { extproc, admin } = await app.start()
    log.info('ready', {
      version,
      extproc: 'socketPath' in extproc ? extproc.socketPath : `${extproc.host}:${extproc.port}`,
      admin: `http://${admin.host}:${admin.port}`,
      store: config.sessions.store,
      connector: config.kv.connector,
      pods: config.routing.dns?.name ?? config.routing.pods,
      policy: config.routing.policy,
    })
  } catch (error) {
    log.fatal('the gateway could not start', { err: error })
    await app.stop()
    return 1
  }
  log.info('stopping', { signal: await stopped })
  await app.stop()
  log.info('stopped')
  return 0
}

type Parsed =
  | { readonly kind: 'parsed'; readonly command: string; readonly values: ReturnType<typeof parseFlags>['values'] }
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

const print = (text: string): number => {
  process.stdout.write(`${text}\n`)
  return 0
}

const note = (text: string): void => {
  process.stderr.write(`${text}\n`)
}

const fail = (text: string): number => {
  process.stderr.write(`${text}\n`)
  return 1
}
