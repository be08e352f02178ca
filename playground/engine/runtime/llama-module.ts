// The part of node-llama-cpp 3.22 that the engine uses, described here because the package is installed apart from the
// gateway (engine-runtime/) and its own types are not there when the gateway is compiled.

/** What `engine-runtime/llama.mjs` exports. */
export interface LlamaModule {
  getLlama(options: LlamaOptions): Promise<Llama>
  readonly TokenBias: { for(model: LlamaModel): LlamaTokenBias }
  readonly Template: new (source: string) => JinjaTemplate
}

/** Options of `getLlama`; `build: 'never'` and `skipDownload` keep it to the prebuilt binary. */
export interface LlamaOptions {
  readonly gpu: 'auto' | false
  readonly build: 'never'
  readonly skipDownload: true
  readonly progressLogs: false
  readonly maxThreads: number
  readonly logLevel: 'warn'
  readonly logger: (level: string, message: string) => void
}

/** The loaded library. */
export interface Llama {
  readonly llamaCppRelease: { readonly release: string }
  loadModel(options: { modelPath: string; gpuLayers: number }): Promise<LlamaModel>
  dispose(): Promise<void>
}

/** A loaded model. */
export interface LlamaModel {
  readonly trainContextSize: number
  readonly tokens: {
    readonly bos: number | null
    readonly shouldPrependBosToken: boolean
    readonly bosString: string | null
    readonly eosString: string | null
  }
  readonly fileInfo: { readonly metadata: LlamaMetadata }
  tokenize(text: string, specialTokens: boolean): number[]
  isSpecialToken(token: number): boolean
  createContext(options: LlamaContextOptions): Promise<LlamaContext>
  dispose(): Promise<void>
}

/** Metadata of the model's file, as far as the engine reads it. */
export interface LlamaMetadata {
  readonly general: { readonly name?: string; readonly architecture: string }
  readonly tokenizer: {
    readonly ggml: { readonly model: string; readonly tokens: readonly string[] }
    readonly chat_template?: string
  }
}

/** Options of a context: room for `sequences` sequences of `contextSize` tokens each. */
export interface LlamaContextOptions {
  readonly contextSize: number
  readonly sequences: number
  readonly batchSize: number
  readonly threads: number
  readonly swaFullCache: true
  readonly failedCreationRemedy: false
}

/** The memory that holds the sequences' KV. */
export interface LlamaContext {
  readonly contextSize: number
  readonly flashAttention: boolean | 'auto'
  getSequence(): LlamaSequence
  dispose(): Promise<void>
}

/** One sequence of tokens and their KV. */
export interface LlamaSequence {
  readonly nextTokenIndex: number
  readonly contextTokens: number[]
  adaptStateToTokens(tokens: readonly number[], allowShift: boolean): Promise<void>
  evaluateWithoutGeneratingNewTokens(tokens: readonly number[]): Promise<void>
  evaluate(tokens: readonly number[], options: LlamaSampling): AsyncGenerator<number, void, undefined>
  saveStateToFile(path: string): Promise<{ fileSize: number }>
  loadStateFromFile(path: string, risk: { acceptRisk: true }): Promise<void>
  dispose(): Promise<void>
}

/** How the next token is chosen. */
export interface LlamaSampling {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly seed: number
  readonly tokenBias?: LlamaTokenBias
}

/** Scores added to single tokens. */
export interface LlamaTokenBias {
  set(tokens: number[], bias: { logit: number }): LlamaTokenBias
}

/** A compiled chat template. */
export interface JinjaTemplate {
  render(values: Readonly<Record<string, unknown>>): string
}
