// The random-weight model that the engine serves when it is given no file: a llama of ordinary build whose text is
// noise, while its prefill, its KV cache and their times are those of any other model.
import { byteVocabulary } from './byte-vocabulary.ts'
import type { GgufContent, GgufTensor, GgufValue } from './gguf-writer.ts'
import { fillOnes, fillRandomHalfFloats } from './random-weights.ts'

/** Size of a random model. */
export interface RandomModelShape {
  readonly hiddenSize: number
  readonly layers: number
  readonly heads: number
  /** Heads of keys and values: fewer of them make a smaller KV cache. */
  readonly kvHeads: number
  readonly feedForwardSize: number
  readonly trainedContextTokens: number
  /**
   * How far queries and keys reach beyond unit size: attention that picks out single tokens makes the text depend on
   * the whole context.
   */
  readonly attentionGain: number
  /** Spreads the scores of the next token, so that rounding seldom decides which one is best. */
  readonly outputGain: number
  readonly seed: number
}

/**
 * The model served by default. Its feed-forward part is wide and its KV heads are few, so that computing a prompt is
 * dear and its KV is small: 3,000 tokens take seconds to compute on one thread and milliseconds to load.
 */
export const defaultRandomModel: RandomModelShape = {
  hiddenSize: 256,
  layers: 4,
  heads: 4,
  kvHeads: 1,
  feedForwardSize: 6144,
  trainedContextTokens: 32_768,
  attentionGain: 1.8,
  outputGain: 4,
  seed: 3,
}

/** Name under `general.name`, by which the engine knows such a file again. */
export const randomModelName = 'tiny-random'

/** ChatML, the form in which the model is shown its messages. */
export const chatmlTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** Describes the model's file for `encodeGguf`. */
export function randomModelContent(shape: RandomModelShape): GgufContent {
  return { metadata: metadata(shape), tensors: tensors(shape) }
}

function metadata(shape: RandomModelShape): [string, GgufValue][] {
  const vocabulary = byteVocabulary()
  return [
    ['general.architecture', { type: 'string', value: 'llama' }],
    ['general.name', { type: 'string', value: randomModelName }],
    ['general.description', { type: 'string', value: 'Random weights: the text is noise.' }],
    ['general.file_type', { type: 'uint32', value: 1 }],
    ['llama.context_length', { type: 'uint32', value: shape.trainedContextTokens }],
    ['llama.embedding_length', { type: 'uint32', value: shape.hiddenSize }],
    ['llama.block_count', { type: 'uint32', value: shape.layers }],
    ['llama.feed_forward_length', { type: 'uint32', value: shape.feedForwardSize }],
    ['llama.attention.head_count', { type: 'uint32', value: shape.heads }],
    ['llama.attention.head_count_kv', { type: 'uint32', value: shape.kvHeads }],
    ['llama.attention.layer_norm_rms_epsilon', { type: 'float32', value: 1e-5 }],
    ['llama.rope.dimension_count', { type: 'uint32', value: shape.hiddenSize / shape.heads }],
    ['llama.rope.freq_base', { type: 'float32', value: 10_000 }],
    ['llama.vocab_size', { type: 'uint32', value: vocabulary.tokens.length }],
    ['tokenizer.ggml.model', { type: 'string', value: 'gpt2' }],
    ['tokenizer.ggml.pre', { type: 'string', value: 'gpt-2' }],
    ['tokenizer.ggml.tokens', { type: 'strings', value: vocabulary.tokens }],
    ['tokenizer.ggml.token_type', { type: 'int32s', value: vocabulary.tokenTypes }],
    ['tokenizer.ggml.merges', { type: 'strings', value: vocabulary.merges }],
    ['tokenizer.ggml.bos_token_id', { type: 'uint32', value: vocabulary.endOfTextId }],
    ['tokenizer.ggml.eos_token_id', { type: 'uint32', value: vocabulary.endOfTurnId }],
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: false }],
    ['tokenizer.chat_template', { type: 'string', value: chatmlTemplate }],
  ]
}

function tensors(shape: RandomModelShape): GgufTensor[] {
  const { hiddenSize, feedForwardSize, attentionGain, outputGain, seed } = shape
  const vocabularySize = byteVocabulary().tokens.length
  const kvSize = (hiddenSize / shape.heads) * shape.kvHeads
  const matrix = (name: string, inputs: number, outputs: number, gain: number): GgufTensor => ({
    name,
    type: 'f16',
    dimensions: [inputs, outputs],
    fill: (target) => fillRandomHalfFloats(target, { seed, name, deviation: gain / Math.sqrt(inputs) }),
  })
  const norm = (name: string): GgufTensor => ({ name, type: 'f32', dimensions: [hiddenSize], fill: fillOnes })
  const layer = (index: number): GgufTensor[] => {
    const prefix = `blk.${index}`
    return [
      norm(`${prefix}.attn_norm.weight`),
      matrix(`${prefix}.attn_q.weight`, hiddenSize, hiddenSize, attentionGain),
      matrix(`${prefix}.attn_k.weight`, hiddenSize, kvSize, attentionGain),
      matrix(`${prefix}.attn_v.weight`, hiddenSize, kvSize, 1),
      matrix(`${prefix}.attn_output.weight`, hiddenSize, hiddenSize, 1),
      norm(`${prefix}.ffn_norm.weight`),
      matrix(`${prefix}.ffn_gate.weight`, hiddenSize, feedForwardSize, 1),
      matrix(`${prefix}.ffn_up.weight`, hiddenSize, feedForwardSize, 1),
      matrix(`${prefix}.ffn_down.weight`, feedForwardSize, hiddenSize, 1),
    ]
  }
  return [
    matrix('token_embd.weight', hiddenSize, vocabularySize, Math.sqrt(hiddenSize)),
    norm('output_norm.weight'),
    matrix('output.weight', hiddenSize, vocabularySize, outputGain),
    ...Array.from({ length: shape.layers }, (_, index) => layer(index)).flat(),
  ]
}
