// The engine's command line.
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { packageRoot } from '../launcher/tools-dir.ts'

/** Settings of one engine process. */
export interface EngineOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** Folder of saved slots, shared between pods; undefined switches saving off. */
  readonly kvFolder: string | undefined
  /** The model's GGUF file, or undefined for the random model. */
  readonly modelPath: string | undefined
  /** Folder in which the random model is kept. */
  readonly modelFolder: string
  /** Names under which the model is served, the primary one first. */
  readonly modelNames: readonly string[]
  readonly slots: number
  /** Tokens that each slot can hold. */
  readonly contextTokens: number
  readonly threads: number
  readonly defaultMaxTokens: number
  readonly maxBodyBytes: number
  readonly alwaysSendUsage: boolean
  /** Name of this process in its log. */
  readonly name: string
  readonly logLevel: string
  readonly exitWithParent: boolean
}

/** What came of reading the command line. */
export type OptionsOutcome =
  | { readonly kind: 'run'; readonly options: EngineOptions }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'invalid'; readonly message: string }

const defaultModelName = 'tiny-random'
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'silent']

const flags = {
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '0' },
  'kv-dir': { type: 'string' },
  model: { type: 'string' },
  'model-name': { type: 'string', multiple: true },
  'model-dir': { type: 'string', default: join(packageRoot(), '.run/models') },
  slots: { type: 'string', default: '4' },
  'context-tokens': { type: 'string', default: '8192' },
  threads: { type: 'string', default: '1' },
  'max-output-tokens': { type: 'string', default: '128' },
  'max-body-bytes': { type: 'string', default: '8388608' },
  'always-usage': { type: 'boolean', default: false },
  name: { type: 'string', default: 'engine' },
  'log-level': { type: 'string', default: 'info' },
  'exit-with-parent': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

const help = `Usage: engine [options]

An OpenAI-compatible server around llama.cpp. One process is one pod.

  --host HOST             address to listen on (127.0.0.1)
  --port PORT             port, 0 for a free one (0)
  --kv-dir DIR            folder of saved slots, shared between pods; without it slots cannot be saved
  --model FILE            GGUF file to serve; without it a small model of random weights, whose text is noise
  --model-name NAME       name to serve it under; may be given several times (tiny-random, or the file's name)
  --model-dir DIR         where the random model is kept (.run/models of this package)
  --slots N               sequences at a time (4)
  --context-tokens N      tokens that each slot can hold (8192)
  --threads N             threads to compute with (1)
  --max-output-tokens N   answer tokens for a request that names no limit (128)
  --max-body-bytes N      largest request body (8388608)
  --always-usage          end every stream with its token counts, asked for or not
  --name NAME             name of this process in its log (engine)
  --log-level LEVEL       ${logLevels.join(', ')} (info)
  --exit-with-parent      end when the parent process does
  --help                  show this

When it can serve, it writes one line of JSON to standard output: {"ready":true,"host":…,"port":…,…}.
`

/** Reads the arguments, without the program's own name. */
export function parseOptions(args: readonly string[]): OptionsOutcome {
  try {
    const { values } = parseArgs({ args: [...args], options: flags, allowPositionals: false })
    if (values.help) return { kind: 'help', text: help }
    return { kind: 'run', options: toOptions(values) }
  } catch (error) {
    return { kind: 'invalid', message: error instanceof Error ? error.message : String(error) }
  }
}

type FlagValues = ReturnType<typeof parseArgs<{ options: typeof flags }>>['values']

/** Throws a RangeError for a value that is out of range. */
function toOptions(values: FlagValues): EngineOptions {
  const logLevel = values['log-level']
  if (!logLevels.includes(logLevel)) throw new RangeError(`--log-level must be one of ${logLevels.join(', ')}`)
  return {
    host: values.host,
    port: wholeNumber('port', values.port, { min: 0, max: 65_535 }),
    kvFolder: values['kv-dir'],
    modelPath: values.model,
    modelFolder: values['model-dir'],
    modelNames: modelNames(values['model-name'], values.model),
    slots: wholeNumber('slots', values.slots, { min: 1, max: 256 }),
    contextTokens: wholeNumber('context-tokens', values['context-tokens'], { min: 256, max: 1_048_576 }),
    threads: wholeNumber('threads', values.threads, { min: 1, max: 512 }),
    defaultMaxTokens: wholeNumber('max-output-tokens', values['max-output-tokens'], { min: 1, max: 1_048_576 }),
    maxBodyBytes: wholeNumber('max-body-bytes', values['max-body-bytes'], { min: 1, max: 1_073_741_824 }),
    alwaysSendUsage: values['always-usage'],
    name: values.name,
    logLevel,
    exitWithParent: values['exit-with-parent'],
  }
}

function modelNames(given: readonly string[] | undefined, modelPath: string | undefined): readonly string[] {
  if (given !== undefined) return [...new Set(given)]
  return [modelPath === undefined ? defaultModelName : basename(modelPath, '.gguf')]
}

function wholeNumber(flag: string, text: string, range: { readonly min: number; readonly max: number }): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < range.min || value > range.max) {
    throw new RangeError(`--${flag} must be a whole number from ${range.min} to ${range.max}, not '${text}'`)
  }
  return value
}
