#!/usr/bin/env node
// Command line entry of the engine: one process is one pod.
import { pino } from 'pino'
import { type EngineOptions, parseOptions } from './options.ts'
import { startEngine } from './run-engine.ts'
import { watchParent } from './watch-parent.ts'

/** How long requests under way may take to finish after the first signal; a second signal cuts them at once. */
const drainMs = 5_000

const parsed = parseOptions(process.argv.slice(2))
switch (parsed.kind) {
  case 'help':
    process.stdout.write(parsed.text)
    break
  case 'invalid':
    process.stderr.write(`engine: ${parsed.message}\nTry --help.\n`)
    process.exitCode = 2
    break
  case 'run':
    await run(parsed.options)
    break
}

async function run(options: EngineOptions): Promise<void> {
  const standardError = 2
  const log = pino({ name: options.name, level: options.logLevel }, pino.destination({ fd: standardError, sync: true }))
  const starting = startEngine(options, {
    log,
    onReady: (line) => process.stdout.write(`${JSON.stringify(line)}\n`),
  })

  const cutting = new AbortController()
  let isStopping = false
  const stop = async (reason: string) => {
    log.info({ reason }, 'stopping')
    const engine = await starting
    const timer = setTimeout(() => cutting.abort(), drainMs)
    await engine.stop(cutting.signal)
    clearTimeout(timer)
    process.exit(0)
  }
  const onStop = (reason: string) => {
    if (isStopping) return cutting.abort()
    isStopping = true
    void stop(reason).catch(fail)
  }
  const fail = (error: unknown) => {
    log.fatal({ err: error }, 'the engine cannot go on')
    process.exit(1)
  }

  process.on('SIGTERM', () => onStop('SIGTERM'))
  process.on('SIGINT', () => onStop('SIGINT'))
  if (options.exitWithParent) {
    watchParent(() => {
      cutting.abort()
      onStop('the parent is gone')
    })
  }
  await starting.catch(fail)
}
