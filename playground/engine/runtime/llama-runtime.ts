// The inference runtime on llama.cpp, through node-llama-cpp.
import { randomModelName } from '../gguf/random-model.ts'
import { chatmlSegments } from '../prompt/chatml.ts'
import type { InferenceRuntime } from './inference-runtime.ts'
import type { LlamaContext, LlamaModel, LlamaModule, LlamaTokenBias } from './llama-module.ts'
import { createLlamaSequence } from './llama-sequence.ts'
import { modelFingerprint } from './model-fingerprint.ts'
import { createStepGate } from './step-gate.ts'
import { createTokenBytes } from './token-bytes.ts'

/** Settings of the runtime. */
export interface LlamaRuntimeOptions {
  readonly modelPath: string
  readonly slots: number
  /** Tokens that each slot can hold. */
  readonly contextTokens: number
  readonly threads: number
  /** Receives what llama.cpp has to say from warnings upwards. */
  readonly onLibraryMessage: (level: string, message: string) => void
}

/**
 * Largest batch that llama.cpp computes at once: a piece of one prompt and the next token of every other slot find room
 * together.
 */
const batchTokens = 512

/**
 * Characters that the random model may answer with: readable, plain in JSON, and one token each, so that an answer sent
 * back in the next turn is the same tokens.
 */
const noiseAlphabet = 'abcdefghijklmnopqrstuvwxyz ,.'
/**
 * Far above any score that the random model gives, so that nothing else is ever chosen, the end of the answer included.
 */
const noiseAlphabetLogit = 100

/** Loads the model. Throws when the file cannot be read or memory does not suffice. */
export async function createLlamaRuntime(module: LlamaModule, options: LlamaRuntimeOptions): Promise<InferenceRuntime> {
  const llama = await module.getLlama({
    // Apple Silicon has one prebuilt package, which is the one with Metal; no layer is put on the GPU there either.
    gpu: process.platform === 'darwin' && process.arch === 'arm64' ? 'auto' : false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: options.threads,
    logLevel: 'warn',
    logger: options.onLibraryMessage,
  })
  const model = await llama.loadModel({ modelPath: options.modelPath, gpuLayers: 0 })
  const context = await model.createContext({
    contextSize: options.contextTokens,
    sequences: options.slots,
    batchSize: batchTokens,
    threads: options.threads,
    // Models with a sliding window would else forget the prefix that the next request wants to reuse.
    swaFullCache: true,
    failedCreationRemedy: false,
  })
  const { metadata } = model.fileInfo
  const isNoise = metadata.general.name === randomModelName
  const bias = isNoise ? noiseBias(module, model) : undefined
  const vocabulary = metadata.tokenizer.ggml.tokens
  const bytesOf = createTokenBytes(metadata.tokenizer.ggml.model)
  return {
    sequences: createSequences(context, options.slots, bias),
    contextTokens: context.contextSize,
    vocabularySize: vocabulary.length,
    longestTokenCharacters: vocabulary.reduce((longest, entry) => Math.max(longest, entry.length), 1),
    isNoise,
    fingerprint: await modelFingerprint({
      modelPath: options.modelPath,
      llamaRelease: llama.llamaCppRelease.release,
      flashAttention: context.flashAttention,
    }),
    tokenize: (text) => withStart(model, model.tokenize(text, true)),
    tokenizeChat: createChatTokenizer(module, model, isNoise),
    tokenBytes: (token) => (model.isSpecialToken(token) ? new Uint8Array() : bytesOf(vocabulary[token] ?? '')),
    async dispose() {
      await context.dispose()
      await model.dispose()
      await llama.dispose()
    },
  }
}

function createSequences(context: LlamaContext, slots: number, bias: LlamaTokenBias | undefined) {
  const gate = createStepGate()
  return Array.from({ length: slots }, () => createLlamaSequence(context, gate, bias))
}

function createChatTokenizer(
  module: LlamaModule,
  model: LlamaModel,
  isNoise: boolean,
): InferenceRuntime['tokenizeChat'] {
  const source = model.fileInfo.metadata.tokenizer.chat_template
  if (isNoise || source === undefined) {
    return (messages) =>
      chatmlSegments(messages).flatMap((segment) => model.tokenize(segment.text, segment.kind === 'mark'))
  }
  const template = new module.Template(source)
  const { bosString, eosString } = model.tokens
  return (messages) => {
    const text = template.render({
      messages,
      add_generation_prompt: true,
      bos_token: bosString ?? '',
      eos_token: eosString ?? '',
    })
    return withStart(model, model.tokenize(text, true))
  }
}

function withStart(model: LlamaModel, tokens: readonly number[]): readonly number[] {
  const { bos, shouldPrependBosToken } = model.tokens
  return bos === null || !shouldPrependBosToken || tokens[0] === bos ? tokens : [bos, ...tokens]
}

function noiseBias(module: LlamaModule, model: LlamaModel): LlamaTokenBias {
  const letters = Array.from(noiseAlphabet, (character) => model.tokenize(character, false)).flat()
  return letters.reduce((bias, token) => bias.set([token], { logit: noiseAlphabetLogit }), module.TokenBias.for(model))
}
