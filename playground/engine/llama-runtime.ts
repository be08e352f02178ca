// The engine's view of llama.cpp, through node-llama-cpp, which is installed apart from the gateway: its types are not
// there when this is compiled, so the part in use is described here.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createTokenSequence, type LlamaSequence } from './llama-sequence.ts'
import { createNoise, type NoiseLimits, noiseLimits, type TokenBias } from './noise.ts'
import { chatmlTemplate, kindOfRandomModel } from './random-model.ts'
import { createStepGate } from './step-gate.ts'
import { byteAlphabet } from './vocabulary.ts'

/** One message of a conversation, its content joined to plain text. */
export interface ChatMessage {
  readonly role: string
  readonly content: string
}

interface LlamaModel {
  readonly tokens: {
    readonly bos: number | null
    readonly shouldPrependBosToken: boolean
    readonly bosString: string | null
    readonly eosString: string | null
  }
  readonly fileInfo: {
    readonly metadata: {
      readonly general: { readonly name?: string }
      readonly tokenizer: {
        readonly ggml: { readonly model: string; readonly tokens: readonly string[] }
        readonly chat_template?: string
      }
    }
  }
  tokenize(text: string, specialTokens: boolean): number[]
  isSpecialToken(token: number): boolean
  createContext(options: object): Promise<{ readonly contextSize: number; getSequence(): LlamaSequence }>
}

/** What `llama.mjs` of the installation exports. */
interface LlamaModule {
  readonly getLlama: (options: object) => Promise<{
    readonly llamaCppRelease: { readonly release: string }
    loadModel(options: object): Promise<LlamaModel>
    dispose(): Promise<void>
  }>
  readonly TokenBias: { for(model: LlamaModel): TokenBias }
  readonly Template: new (source: string) => { render(values: object): string }
}

/** Largest batch computed at once: a piece of one prompt and the next token of every other slot fit together. */
const batchTokens = 512

/** Loads the model. @throws Error when llama.cpp is not installed, the file cannot be read or memory is too small */
export const loadLlama = async (options: {
  readonly runtime: string
  readonly modelPath: string
  readonly slots: number
  readonly contextTokens: number
  readonly onLibraryMessage: (level: string, message: string) => void
}) => {
  const modelBytes = (await stat(options.modelPath)).size
  const { getLlama, TokenBias, Template } = (await import(
    pathToFileURL(join(options.runtime, 'llama.mjs')).href
  )) as LlamaModule
  const llama = await getLlama({
    // Apple Silicon has one prebuilt package, which is the one with Metal; no layer is put on the GPU there either.
    gpu: process.platform === 'darwin' && process.arch === 'arm64' ? 'auto' : false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
    logLevel: 'warn',
    logger: options.onLibraryMessage,
  })
  const model = await llama.loadModel({ modelPath: options.modelPath, gpuLayers: 0 })
  const { general, tokenizer } = model.fileInfo.metadata
  const kind = kindOfRandomModel(general.name)
  const context = await model.createContext({
    contextSize: options.contextTokens,
    sequences: options.slots,
    batchSize: batchTokens,
    threads: 1,
    // Models with a sliding window would forget the prefix that the next request reuses.
    swaFullCache: true,
    // Long prompts need it: its time grows less with the context, and its memory does not.
    flashAttention: kind === 'words',
    failedCreationRemedy: false,
  })
  const vocabulary = tokenizer.ggml.tokens
  const gate = createStepGate()
  const template = new Template(tokenizer.chat_template ?? chatmlTemplate)
  const { bos, shouldPrependBosToken, bosString, eosString } = model.tokens
  const tokenize = (text: string): readonly number[] => {
    const tokens = model.tokenize(text, true)
    return bos === null || !shouldPrependBosToken || tokens[0] === bos ? tokens : [bos, ...tokens]
  }
  const bytesOf = tokenizer.ggml.model === 'gpt2' ? alphabetBytes() : textBytes
  const tokenBytes = (token: number): Uint8Array =>
    model.isSpecialToken(token) ? new Uint8Array() : bytesOf(vocabulary[token] ?? '')
  const noiseTools = {
    tokenize: (text: string) => model.tokenize(text, false),
    newBias: () => TokenBias.for(model),
  }
  const noise = kind === undefined ? undefined : createNoise(kind, noiseTools)
  const answerOptions = (lastToken: number): object =>
    noise === undefined ? {} : { tokenBias: noise(tokenBytes(lastToken)) }
  const limits: NoiseLimits = kind === undefined ? {} : noiseLimits[kind]
  return {
    /** One for each slot; index = slot id. */
    sequences: Array.from({ length: options.slots }, () =>
      createTokenSequence(() => context.getSequence(), gate, answerOptions),
    ),
    /** Where answers end that the model does not end itself. */
    limits,
    /** Most tokens that a sequence can hold. */
    contextTokens: context.contextSize,
    vocabularySize: vocabulary.length,
    modelBytes,
    /** Release of llama.cpp, such as `b11669`. */
    build: llama.llamaCppRelease.release,
    /** Tokens of plain text; marks such as `<|im_end|>` in it become their special tokens. */
    tokenize,
    /** Tokens of a conversation in the model's chat form, ready for the assistant's next message. */
    tokenizeChat: (messages: readonly ChatMessage[]): readonly number[] =>
      tokenize(
        template.render({
          messages,
          add_generation_prompt: true,
          bos_token: bosString ?? '',
          eos_token: eosString ?? '',
        }),
      ),
    /** The bytes of text that a token stands for; none for a special token. */
    tokenBytes,
    /** Frees the model once the steps under way have ended. No call may follow. */
    dispose: (): Promise<void> => gate.exclusive(() => llama.dispose()),
  }
}

/** A loaded model with its sequences. */
export type LlamaRuntime = Awaited<ReturnType<typeof loadLlama>>

/** Vocabularies of the kind `gpt2` spell bytes in an alphabet. */
const alphabetBytes = (): ((entry: string) => Uint8Array) => {
  const byteOf = new Map(byteAlphabet.map((character, byte) => [character, byte]))
  return (entry) => {
    const bytes = Array.from(entry, (character) => byteOf.get(character))
    // Tokens that were added to the vocabulary later are spelt as text.
    return bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes) : Buffer.from(entry)
  }
}

/** Other vocabularies spell text, with `▁` as space. */
const textBytes = (entry: string): Uint8Array => {
  const hexByte = /^<0x([0-9A-F]{2})>$/.exec(entry)?.[1]
  return hexByte === undefined ? Buffer.from(entry.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(hexByte, 16))
}
