// A GGUF file of the user's own: its name, its chat template, its tokens that are parts of characters.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { encodeGguf } from '../../../../playground/engine/gguf/gguf-writer.ts'
import { defaultRandomModel, randomModelContent } from '../../../../playground/engine/gguf/random-model.ts'
import { createEngineClient } from './support/engine-client.ts'
import { createEngineProcesses, type EngineProcess } from './support/engine-process.ts'

jest.setTimeout(120_000)

const template = '{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[assistant]'

describe('a file of one’s own', () => {
  const processes = createEngineProcesses()
  let folder = ''
  let engine: EngineProcess
  let client: ReturnType<typeof createEngineClient>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'own-file-'))
    const path = join(folder, 'my-model.gguf')
    const { metadata, tensors } = randomModelContent({ ...defaultRandomModel, layers: 1, feedForwardSize: 256 })
    const changed = metadata.map(([key, value]) => {
      if (key === 'general.name') return [key, { type: 'string', value: 'My Model' }] as const
      if (key === 'tokenizer.chat_template') return [key, { type: 'string', value: template }] as const
      return [key, value] as const
    })
    await writeFile(path, Buffer.concat([...encodeGguf({ metadata: changed, tensors })]))
    engine = await processes.start(['--model', path, '--context-tokens', '1024', '--slots', '1', '--log-level', 'warn'])
    client = createEngineClient(engine.url)
  })
  afterAll(async () => {
    await processes.stopAll()
    await rm(folder, { recursive: true, force: true })
  })

  test('is served under its file name and not called noise', async () => {
    expect(engine).toMatchObject({ model: 'my-model', noise: false })
    expect(JSON.stringify((await client.getJson('/v1/models')).body)).not.toContain('noise')
  })

  test('renders conversations with its own template', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]
    const { body } = await client.postJson('/tokenize', { messages })
    const expected = [...Buffer.from('[system]Be brief.[user]Hi[assistant]')]
    expect(body).toMatchObject({ count: expected.length, tokens: expected })
  })

  test('answers with valid text although its tokens are single bytes, streamed as whole', async () => {
    const request = { model: 'my-model', prompt: 'Grüße', max_tokens: 200, temperature: 2, seed: 5 }
    const whole = await client.complete(request.prompt, request)
    const response = await client.post('/v1/completions', { ...request, stream: true })
    const chunks = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'))
    const texts: string[] = chunks.map((event) => JSON.parse(event.slice('data: '.length)).choices[0].text)
    expect(whole.text).toContain('\u{fffd}')
    expect(texts.join('')).toBe(whole.text)
    expect(texts.map((text) => Buffer.from(text).toString())).toEqual(texts)
  })
})
