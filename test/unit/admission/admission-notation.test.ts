import { describe, expect, test } from '@jest/globals'
import { parsePriority, parseRequirement, parseResourceCount } from '../../../src/admission/plan/admission-notation.ts'

describe('a requirement', () => {
  test.each([
    { text: 'prefill=R1:4 R2:4', kind: 'prefill', model: undefined, counts: { R1: 4, R2: 4 } },
    { text: 'load=disk:1', kind: 'load', model: undefined, counts: { disk: 1 } },
    { text: 'prefill/A=R1:4', kind: 'prefill', model: 'A', counts: { R1: 4 } },
    { text: 'prefill/A=R1:0', kind: 'prefill', model: 'A', counts: { R1: 0 } },
    {
      text: 'prefill/meta-llama/Llama-3.1-8B:free=gpu:1',
      kind: 'prefill',
      model: 'meta-llama/Llama-3.1-8B:free',
      counts: { gpu: 1 },
    },
    { text: 'load/a=b=disk:2', kind: 'load', model: 'a=b', counts: { disk: 2 } },
    { text: 'prefill/load=R1:1', kind: 'prefill', model: 'load', counts: { R1: 1 } },
    { text: 'prefill=  R1:1   R2:2 ', kind: 'prefill', model: undefined, counts: { R1: 1, R2: 2 } },
  ])('$text', ({ text, kind, model, counts }) => {
    expect(parseRequirement(text)).toEqual({ kind, model, counts: new Map(Object.entries(counts)) })
  })

  test.each([
    '',
    'R1:4',
    'A=R1:4',
    'prefill',
    'prefill=',
    'prefill/=R1:4',
    'prefill=R1',
    'prefill=R1:',
    'prefill=R1:-1',
    'prefill=R1:1.5',
    'prefill=R1:04',
    'prefill=R1:4:0',
    'prefill=1R:4',
    'prefill=R1:4 R1:5',
    'prefill=R1:9999999999',
  ])('is not %p', (text) => {
    expect(parseRequirement(text)).toBeUndefined()
  })
})

describe('a count', () => {
  test.each([
    { text: 'R1:10', resource: 'R1', count: 10, pod: undefined },
    { text: 'R2:5:0', resource: 'R2', count: 5, pod: 0 },
    { text: 'R2:8:1', resource: 'R2', count: 8, pod: 1 },
    { text: 'R2:8:10.0.0.1:8000', resource: 'R2', count: 8, pod: '10.0.0.1:8000' },
    { text: 'R2:8:vllm-0.vllm:8000', resource: 'R2', count: 8, pod: 'vllm-0.vllm:8000' },
    { text: 'R2:8:[::1]:8000', resource: 'R2', count: 8, pod: '[::1]:8000' },
    { text: 'R2:8:8000:8000', resource: 'R2', count: 8, pod: '8000:8000' },
  ])('$text', ({ text, ...parts }) => {
    expect(parseResourceCount(text)).toEqual(parts)
  })

  test.each([
    '',
    'R1',
    'R1:',
    'R1:x',
    'R1:1:',
    'R1:1:pod',
    'R1:1:-1',
    'R1:1:pod:',
    'R1:1::8000',
    'R1:1:pod:0',
    'R 1:1',
  ])('is not %p', (text) => {
    expect(parseResourceCount(text)).toBeUndefined()
  })
})

describe('a priority', () => {
  test.each([
    { text: 'A=1', model: 'A', priority: 1 },
    { text: 'a/b:c=20', model: 'a/b:c', priority: 20 },
    { text: 'a=b=3', model: 'a=b', priority: 3 },
  ])('$text', ({ text, ...parts }) => {
    expect(parsePriority(text)).toEqual(parts)
  })

  test.each(['', 'A', 'A=', '=1', 'A=0', 'A=-1', 'A=1.5', 'A=x'])('is not %p', (text) => {
    expect(parsePriority(text)).toBeUndefined()
  })
})
