import { describe, expect, test } from '@jest/globals'
import type { GenerationEvent, GenerationRequest } from '../../../../../playground/engine/inference/generation.ts'
import { runGeneration } from '../../../../../playground/engine/inference/run-generation.ts'
import { createSlot } from '../../../../../playground/engine/slots/slot.ts'
import { createScriptedSequence, type Script } from '../slots/scripted-sequence.ts'

const runtime = { tokenBytes: (token: number) => Uint8Array.of(token) }
const letters = (text: string) => Array.from(text, (letter) => letter.charCodeAt(0))

function newSlot(script: Script) {
  const sequence = createScriptedSequence(script)
  return { slot: createSlot(0, sequence), sequence }
}

function newRequest(change: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    tokens: letters('prompt'),
    maxTokens: 10,
    sampling: { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 1 },
    stops: [],
    slotId: undefined,
    saltHash: '',
    sessionHash: null,
    signal: new AbortController().signal,
    ...change,
  }
}

async function run(slot: ReturnType<typeof createSlot>, request: GenerationRequest) {
  const events: GenerationEvent[] = []
  for await (const event of runGeneration(slot, request, runtime)) events.push(event)
  return {
    events,
    text: events.map((event) => (event.kind === 'started' ? '' : event.text)).join(''),
    tokens: events.filter((event) => event.kind === 'token').length,
    last: events.at(-1),
    started: events[0],
  }
}

describe('an answer', () => {
  test('is computed in pieces, the last prompt token by itself', async () => {
    const { slot, sequence } = newSlot({ answer: letters('ok') })
    const tokens = Array.from({ length: 600 }, (_, index) => index % 100)
    const { text, last } = await run(slot, newRequest({ tokens }))
    expect(sequence.calls).toEqual(['append 256', 'append 256', 'append 87', 'generate from 99'])
    expect(text).toBe('ok')
    expect(last).toEqual({ kind: 'finished', reason: 'stop', text: '' })
  })

  test('reuses what the slot holds', async () => {
    const { slot, sequence } = newSlot({ answer: letters('ok') })
    await run(slot, newRequest({ tokens: letters('abcdef') }))
    sequence.calls.length = 0
    const { started } = await run(slot, newRequest({ tokens: letters('abcxyz') }))
    expect(started).toEqual({ kind: 'started', slotId: 0, cachedTokens: 3 })
    expect(sequence.calls).toEqual(['truncate 3', 'append 2', `generate from ${'z'.charCodeAt(0)}`])
  })

  test('goes on from the answer before it', async () => {
    const { slot, sequence } = newSlot({ answer: letters('ok') })
    await run(slot, newRequest({ tokens: letters('ab') }))
    sequence.calls.length = 0
    const { started } = await run(slot, newRequest({ tokens: letters('abok!') }))
    expect(started).toMatchObject({ cachedTokens: 3 })
    expect(sequence.calls).toEqual(['append 1', `generate from ${'!'.charCodeAt(0)}`])
  })

  test('computes the last token of a prompt that is there in full', async () => {
    const { slot } = newSlot({ answer: letters('ok') })
    await run(slot, newRequest())
    const { started } = await run(slot, newRequest())
    expect(started).toMatchObject({ cachedTokens: 'prompt'.length - 1 })
  })

  test('reuses nothing that was computed under another salt', async () => {
    const { slot } = newSlot({ answer: letters('ok') })
    await run(slot, newRequest({ saltHash: 'aa' }))
    const other = await run(slot, newRequest({ saltHash: 'bb' }))
    const none = await run(slot, newRequest())
    const same = await run(slot, newRequest())
    expect([other, none, same].map(({ started }) => started)).toMatchObject([
      { cachedTokens: 0 },
      { cachedTokens: 0 },
      { cachedTokens: 5 },
    ])
  })

  test.each([
    ['ends with the model', {}, 'abc', 'stop', 3],
    ['ends at its limit', { maxTokens: 2 }, 'ab', 'length', 2],
    ['is cut at a stop string', { stops: ['b'] }, 'a', 'stop', 2],
    ['sends what was held back for a stop string that never came', { stops: ['cd'] }, 'abc', 'stop', 3],
    ['is cut at a stop string with the last token', { stops: ['c'], maxTokens: 3 }, 'ab', 'stop', 3],
  ])('%s', async (_, change, text, reason, tokens) => {
    const { slot } = newSlot({ answer: letters('abc') })
    const answer = await run(slot, newRequest(change))
    expect({ text: answer.text, tokens: answer.tokens, last: answer.last }).toMatchObject({
      text,
      tokens,
      last: { reason },
    })
  })

  test('ends its text with a replacement for half a character', async () => {
    const { slot } = newSlot({ answer: [0x41, 0xe2, 0x82] })
    expect((await run(slot, newRequest())).text).toBe('A�')
  })

  test('ends without an end when it is aborted between two tokens', async () => {
    const leaving = new AbortController()
    const { slot } = newSlot({
      answer: letters('abc'),
      beforeToken: (index) => (index === 1 ? leaving.abort() : undefined),
    })
    const { text, last } = await run(slot, newRequest({ signal: leaving.signal }))
    expect(text).toBe('a')
    expect(last).toEqual({ kind: 'token', text: 'a' })
  })

  test('computes no more of the prompt once it is aborted', async () => {
    const { slot, sequence } = newSlot({})
    const { events } = await run(slot, newRequest({ signal: AbortSignal.abort() }))
    expect(sequence.calls).toEqual([])
    expect(events).toEqual([{ kind: 'started', slotId: 0, cachedTokens: 0 }])
  })
})
