// The random-weight model that is served when there is no file: a llama of ordinary build whose text is noise, while
// its prefill, its KV cache and their times are those of any other model.
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { installOnce } from '../install/install-once.ts'
import { encodeGguf, type GgufTensor, type GgufValue } from './gguf.ts'
import { createVocabulary, type Vocabulary, type VocabularyKind } from './vocabulary.ts'

export interface RandomModelShape {
  readonly hiddenSize: number
  readonly layers: number
  /** Attention heads; keys and values have one, so that the KV is small. */
  readonly heads: number
  readonly feedForwardSize: number
}

/**
 * A wide feed-forward part makes prompts dear: one thread computes 3,000 tokens in seconds, and loads them at once.
 * With words, two narrow layers: what attention computes grows with the context, and prompts of agents are long.
 */
const defaultShapes: Readonly<Record<VocabularyKind, RandomModelShape>> = {
  bytes: { hiddenSize: 256, layers: 4, heads: 4, feedForwardSize: 6144 },
  words: { hiddenSize: 128, layers: 2, heads: 2, feedForwardSize: 8192 },
}

/** Names under `general.name`, by which the engine knows such a file again. */
export const randomModelNames = { bytes: 'tiny-random', words: 'tiny-random-words' } as const

/** Undefined: no vocabulary has a model of this name. */
export const kindOfRandomModel = (name: string | undefined): VocabularyKind | undefined => {
  switch (name) {
    case randomModelNames.bytes:
      return 'bytes'
    case randomModelNames.words:
      return 'words'
    default:
      return undefined
  }
}

/** ChatML, the form in which the model is shown its messages. */
export const chatmlTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

const trainedContextTokens: Readonly<Record<VocabularyKind, number>> = { bytes: 32_768, words: 131_072 }
/** Attention that picks out single tokens makes the text depend on the whole context. */
const attentionGain = 1.8
/** Spreads the scores of the next token, so that rounding seldom decides which one is best. */
const outputGain = 4
const formatVersion = 2
const fileName = 'tiny-random.gguf'

/** The path of the model's file, in a folder of its own in `folder`, named by its kind; written when it is missing. */
export const randomModelPath = async (
  folder: string,
  kind: VocabularyKind = 'bytes',
  shape: RandomModelShape = defaultShapes[kind],
): Promise<string> => {
  const vocabulary = createVocabulary(kind)
  const key = createHash('sha256')
    .update(JSON.stringify([formatVersion, shape, ...(kind === 'bytes' ? [] : [vocabulary])]))
    .digest('hex')
    .slice(0, 8)
  const directory = join(folder, `${randomModelNames[kind]}-${key}`)
  const content = { metadata: metadata(kind, shape, vocabulary), tensors: tensors(shape, vocabulary.tokens.length) }
  await installOnce({ directory, install: (into) => writeFile(join(into, fileName), encodeGguf(content)) })
  return join(directory, fileName)
}

const [normalToken, controlToken] = [1, 3]

const metadata = (
  kind: VocabularyKind,
  shape: RandomModelShape,
  { tokens, textTokens, merges }: Vocabulary,
): Readonly<Record<string, GgufValue>> => ({
  'general.architecture': 'llama',
  'general.name': randomModelNames[kind],
  'llama.context_length': trainedContextTokens[kind],
  'llama.embedding_length': shape.hiddenSize,
  'llama.block_count': shape.layers,
  'llama.feed_forward_length': shape.feedForwardSize,
  'llama.attention.head_count': shape.heads,
  'llama.attention.head_count_kv': 1,
  'llama.attention.layer_norm_rms_epsilon': { float32: 1e-5 },
  'llama.rope.dimension_count': shape.hiddenSize / shape.heads,
  'llama.rope.freq_base': { float32: 10_000 },
  'llama.vocab_size': tokens.length,
  'tokenizer.ggml.model': 'gpt2',
  'tokenizer.ggml.pre': 'gpt-2',
  'tokenizer.ggml.tokens': tokens,
  'tokenizer.ggml.token_type': tokens.map((_, id) => (id < textTokens ? normalToken : controlToken)),
  'tokenizer.ggml.merges': merges,
  'tokenizer.ggml.bos_token_id': tokens.indexOf('<|endoftext|>'),
  'tokenizer.ggml.eos_token_id': tokens.indexOf('<|im_end|>'),
  'tokenizer.ggml.add_bos_token': false,
  'tokenizer.chat_template': chatmlTemplate,
})

const tensors = (
  { hiddenSize, heads, feedForwardSize, layers }: RandomModelShape,
  vocabularySize: number,
): readonly GgufTensor[] => {
  const matrix = (name: string, inputs: number, outputs: number, gain = 1): GgufTensor => ({
    name,
    type: 'bf16',
    dimensions: [inputs, outputs],
    fill: (target) => fillRandom(target, { name, deviation: gain / Math.sqrt(inputs) }),
  })
  const norm = (name: string): GgufTensor => ({
    name,
    type: 'f32',
    dimensions: [hiddenSize],
    fill: (ones) => void ones.fill(Buffer.from(Float32Array.of(1).buffer)),
  })
  const layer = (index: number): readonly GgufTensor[] => [
    norm(`blk.${index}.attn_norm.weight`),
    matrix(`blk.${index}.attn_q.weight`, hiddenSize, hiddenSize, attentionGain),
    matrix(`blk.${index}.attn_k.weight`, hiddenSize, hiddenSize / heads, attentionGain),
    matrix(`blk.${index}.attn_v.weight`, hiddenSize, hiddenSize / heads),
    matrix(`blk.${index}.attn_output.weight`, hiddenSize, hiddenSize),
    norm(`blk.${index}.ffn_norm.weight`),
    matrix(`blk.${index}.ffn_gate.weight`, hiddenSize, feedForwardSize),
    matrix(`blk.${index}.ffn_up.weight`, hiddenSize, feedForwardSize),
    matrix(`blk.${index}.ffn_down.weight`, feedForwardSize, hiddenSize),
  ]
  return [
    matrix('token_embd.weight', hiddenSize, vocabularySize, Math.sqrt(hiddenSize)),
    norm('output_norm.weight'),
    matrix('output.weight', hiddenSize, vocabularySize, outputGain),
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
  ]
}

/** Evenly distributed weights, by xorshift from the tensor's name alone: every machine writes the same bytes. */
const fillRandom = (target: Buffer, weights: { readonly name: string; readonly deviation: number }): void => {
  const limit = weights.deviation * Math.sqrt(3)
  const float = new Float32Array(1)
  const bits = new Uint32Array(float.buffer)
  let state = createHash('sha256').update(weights.name).digest().readUInt32LE(0) | 1
  for (let offset = 0; offset + 2 <= target.length; offset += 2) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    float[0] = ((state >>> 0) / 2 ** 31 - 1) * limit
    // A bfloat16 is the upper half of a float32.
    target.writeUInt16LE((bits[0] ?? 0) >>> 16, offset)
  }
}
