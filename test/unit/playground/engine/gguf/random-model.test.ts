import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { byteVocabulary, gpt2ByteAlphabet } from '../../../../../playground/engine/gguf/byte-vocabulary.ts'
import { ensureRandomModel } from '../../../../../playground/engine/gguf/ensure-random-model.ts'
import type { RandomModelShape } from '../../../../../playground/engine/gguf/random-model.ts'
import { readGguf } from './read-gguf.ts'

const smallShape: RandomModelShape = {
  hiddenSize: 64,
  layers: 2,
  heads: 4,
  kvHeads: 1,
  feedForwardSize: 96,
  trainedContextTokens: 1024,
  attentionGain: 1.8,
  outputGain: 4,
  seed: 3,
}

describe('the byte vocabulary', () => {
  test('gives every byte a character of its own, as GPT-2 does', () => {
    const alphabet = gpt2ByteAlphabet()
    expect(new Set(alphabet).size).toBe(256)
    expect([alphabet[0x20], alphabet[0x0a], alphabet[0x41], alphabet[0xff], alphabet[0xad]]).toEqual([
      'Ġ',
      'Ċ',
      'A',
      'ÿ',
      'Ń',
    ])
  })

  test('has one merge, of two bytes that never occur in UTF-8', () => {
    expect(byteVocabulary().merges).toEqual(['À Á'])
  })
})

describe('the random model', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'random-model-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  test('is a llama file with every tensor that the shape asks for', async () => {
    const { path, bytes } = await ensureRandomModel(folder, smallShape)
    const file = await readFile(path)
    const { metadata, tensors } = readGguf(file)
    expect(file.length).toBe(bytes)
    expect(metadata.get('general.architecture')).toBe('llama')
    expect(metadata.get('tokenizer.ggml.tokens')).toHaveLength(259)
    expect(metadata.get('tokenizer.ggml.token_type')).toHaveLength(259)
    expect(metadata.get('tokenizer.ggml.eos_token_id')).toBe(258)
    expect(tensors).toHaveLength(3 + 2 * 9)
    expect(tensors.find(({ name }) => name === 'blk.1.attn_k.weight')?.dimensions).toEqual([64, 16])
  })

  test('has the same bytes on every machine', async () => {
    const { path } = await ensureRandomModel(folder, smallShape)
    const hash = createHash('sha256').update(await readFile(path))
    expect(hash.digest('hex')).toBe('af5ed7eb02cdbd6666126a56a31c6151df8252d91c4e7562874528aa96d00a1f')
  })

  test('is written once, then reused', async () => {
    const first = await ensureRandomModel(folder, smallShape)
    const second = await ensureRandomModel(folder, smallShape)
    expect([first.outcome, second.outcome]).toEqual(['written', 'reused'])
    expect(second.path).toBe(first.path)
  })

  test('can be written by several processes at a time', async () => {
    const files = await Promise.all(Array.from({ length: 4 }, () => ensureRandomModel(folder, smallShape)))
    const [path] = new Set(files.map((file) => file.path))
    expect(await readdir(folder)).toEqual([path?.slice(folder.length + 1)])
  })

  test('is written anew where the file is not whole', async () => {
    const { path, bytes } = await ensureRandomModel(folder, smallShape)
    await truncate(path, bytes - 1)
    const again = await ensureRandomModel(folder, smallShape)
    expect(again.outcome).toBe('written')
    expect((await readFile(path)).length).toBe(bytes)
  })

  test.each([
    ['seed', { seed: 4 }],
    ['layers', { layers: 3 }],
    ['gain', { outputGain: 5 }],
  ])('of another %s has another name', async (_, change) => {
    const one = await ensureRandomModel(folder, smallShape)
    const other = await ensureRandomModel(folder, { ...smallShape, ...change })
    expect(other.path).not.toBe(one.path)
  })
})
