#!/usr/bin/env node
// The embedded engine: a llama-server by its interface, on llama.cpp in this process. One process is one pod.
import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { createEngine } from './engine.ts'
import { createHttpServer } from './http-server.ts'
import { loadLlama } from './llama-runtime.ts'
import { randomModelPath } from './random-model.ts'

/** How long requests may take to finish after the first signal; a second signal cuts them at once. */
const drainMs = 5000
const standardError = 2

const { values } = parseArgs({
  options: {
    /** Folder in which the installation of llama.cpp lies. */
    runtime: { type: 'string' },
    host: { type: 'string', default: '127.0.0.1' },
    /** 0 takes a free one. */
    port: { type: 'string', default: '0' },
    /** Folder of saved slots, shared between pods; without it slots cannot be saved. */
    'kv-dir': { type: 'string' },
    /** GGUF file to serve. */
    model: { type: 'string' },
    /** Where the model of random weights is kept that is served without `model`. */
    'model-dir': { type: 'string', default: '.' },
    /** Name to serve it under; may be given several times. */
    'model-name': { type: 'string', multiple: true },
    /** Sequences at a time. */
    slots: { type: 'string', default: '4' },
    /** Tokens that each slot can hold. */
    'context-tokens': { type: 'string', default: '8192' },
    /** Answer tokens for a request that names no limit. */
    'max-output-tokens': { type: 'string', default: '128' },
    /** Ends every stream with its token counts, requested or not. */
    'always-usage': { type: 'boolean', default: false },
    /** Name of this process in its log. */
    name: { type: 'string', default: 'engine' },
    'log-level': { type: 'string', default: 'info' },
  },
})

/** @throws RangeError when the option is not a whole number */
const count = (option: 'port' | 'slots' | 'context-tokens' | 'max-output-tokens'): number => {
  const text = values[option]
  if (!/^\d{1,7}$/.test(text)) throw new RangeError(`--${option} must be a whole number, not '${text}'`)
  return Number(text)
}

const log = pino({ name: values.name, level: values['log-level'] }, pino.destination({ fd: standardError, sync: true }))

const run = async (): Promise<void> => {
  const { runtime } = values
  if (runtime === undefined) throw new Error('--runtime must name the folder of llama.cpp')
  const [slots, contextTokens, defaultMaxTokens] = [count('slots'), count('context-tokens'), count('max-output-tokens')]
  const cutting = new AbortController()
  const server = createHttpServer(log)
  const port = await server.listen({ host: values.host, port: count('port') })
  const isRandom = values.model === undefined
  const modelPath = values.model ?? (await randomModelPath(values['model-dir']))
  const llama = await loadLlama({
    runtime,
    modelPath,
    slots,
    contextTokens,
    onLibraryMessage: (level, message) => log.warn({ library: 'llama.cpp', level }, message.trim()),
  })
  const [name = 'tiny-random', ...aliases] = values['model-name'] ?? [
    isRandom ? 'tiny-random' : basename(modelPath, '.gguf'),
  ]
  const kvDirectory = values['kv-dir']
  if (kvDirectory !== undefined) await mkdir(kvDirectory, { recursive: true })
  server.serve({
    engine: createEngine(llama),
    log,
    kvDirectory,
    modelPath,
    modelNames: [name, ...aliases],
    defaultMaxTokens,
    alwaysSendUsage: values['always-usage'],
  })
  log.info({ modelPath }, isRandom ? 'model loaded; its weights are random, so its text is noise' : 'model loaded')
  process.stdout.write(`${JSON.stringify({ ready: true, host: values.host, port })}\n`)

  let isStopping = false
  const stop = async (): Promise<void> => {
    if (isStopping) return cutting.abort()
    isStopping = true
    log.info('stopping')
    const timer = setTimeout(() => cutting.abort(), drainMs)
    await server.close(cutting.signal)
    await llama.dispose()
    clearTimeout(timer)
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

await run().catch((error: unknown) => {
  log.fatal({ err: error }, 'the engine cannot start')
  process.exit(1)
})
