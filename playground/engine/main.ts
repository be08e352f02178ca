#!/usr/bin/env node
// The embedded engine: a llama-server by its interface, on llama.cpp in this process. One process is one pod.
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { createEngine } from './engine.ts'
import { createHttpServer } from './http-server.ts'
import { loadLlama } from './llama-runtime.ts'
import { randomModelNames, randomModelPath } from './random-model.ts'

/** How long requests may take to finish after the first signal; a second signal cuts them at once. */
const drainMs = 5000

const { values } = parseArgs({
  options: {
    /** Folder in which the installation of llama.cpp lies. */
    runtime: { type: 'string', default: '.' },
    /** Where it listens; port 0 takes a free one. */
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    /** Folder of saved slots, shared between pods; without it slots cannot be saved. */
    'kv-dir': { type: 'string' },
    /** GGUF file to serve. */
    model: { type: 'string' },
    /** Where the model of random weights is kept that is served without `model`. */
    'model-dir': { type: 'string', default: '.' },
    /**
     * Tokens of the model of random weights. `bytes`: one for each byte; an answer to a request without a limit ends
     * after 128 tokens. `words`: some three to four characters; every answer ends by itself after 64 tokens at the
     * latest, however many the request allows, unless it has `ignore_eos`.
     */
    vocabulary: { type: 'string', default: 'bytes' },
    /** Name to serve it under; may be given several times. */
    'model-name': { type: 'string', multiple: true },
    /** Sequences at a time. */
    slots: { type: 'string', default: '4' },
    /** Tokens that each slot can hold. */
    'context-tokens': { type: 'string', default: '8192' },
    /** Without /v1/responses, as many engines are. */
    'no-responses': { type: 'boolean', default: false },
    /** Key that requests have to send; none by default. */
    'api-key': { type: 'string' },
    /** Name of this process in its log. */
    name: { type: 'string', default: 'engine' },
    'log-level': { type: 'string', default: 'info' },
  },
})

const log = pino({ name: values.name, level: values['log-level'] }, pino.destination({ fd: 2, sync: true }))

const run = async (): Promise<void> => {
  const isRandom = values.model === undefined
  const { vocabulary } = values
  if (vocabulary !== 'bytes' && vocabulary !== 'words') throw new Error('--vocabulary must be bytes or words')
  const modelPath = values.model ?? (await randomModelPath(values['model-dir'], vocabulary))
  const llama = await loadLlama({
    runtime: values.runtime,
    modelPath,
    slots: Number(values.slots),
    contextTokens: Number(values['context-tokens']),
    onLibraryMessage: (level, message) => log.warn({ library: 'llama.cpp', level }, message.trim()),
  })
  const kvDirectory = values['kv-dir']
  if (kvDirectory !== undefined) await mkdir(kvDirectory, { recursive: true })
  const modelNames = values['model-name'] ?? [isRandom ? randomModelNames.bytes : basename(modelPath, '.gguf')]
  const server = createHttpServer({
    engine: createEngine(llama),
    log,
    kvDirectory,
    modelPath,
    modelNames,
    apiKey: values['api-key'],
    hasResponses: !values['no-responses'],
  })
  await once(server.listen(Number(values.port), values.host), 'listening')
  log.info({ modelPath }, isRandom ? 'model loaded; its weights are random, so its text is noise' : 'model loaded')

  const stop = async (): Promise<void> => {
    if (!server.listening) return server.closeAllConnections()
    log.info('stopping')
    const closed = once(server, 'close')
    server.close()
    const timer = setTimeout(() => server.closeAllConnections(), drainMs)
    await closed
    clearTimeout(timer)
    await llama.dispose()
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

await run().catch((error: unknown) => {
  log.fatal(`the engine cannot start: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
})
