import { expect, test } from '@jest/globals'
import { parsePriority, parseRequirement, parseResourceCount } from '../../../src/admission/plan/admission-notation.ts'

test.each([
  ['prefill=R1:4 R2:4', 'prefill', undefined, { R1: 4, R2: 4 }],
  ['load=disk:1', 'load', undefined, { disk: 1 }],
  ['prefill/A=R1:0', 'prefill', 'A', { R1: 0 }],
  ['prefill/meta-llama/Llama-3.1-8B:free=gpu:1', 'prefill', 'meta-llama/Llama-3.1-8B:free', { gpu: 1 }],
  ['load/a=b=disk:2', 'load', 'a=b', { disk: 2 }],
  ['prefill/load=R1:1', 'prefill', 'load', { R1: 1 }],
  ['prefill=  R1:1   R2:2 ', 'prefill', undefined, { R1: 1, R2: 2 }],
])('requirement %p is read', (text, kind, model, counts) => {
  expect(parseRequirement(text)).toEqual({ kind, model, counts: new Map(Object.entries(counts)) })
})

test.each([
  ['R1:10', { resource: 'R1', count: 10, pod: undefined }],
  ['R2:5:0', { resource: 'R2', count: 5, pod: 0 }],
  ['R2:8:10.0.0.1:8000', { resource: 'R2', count: 8, pod: '10.0.0.1:8000' }],
  ['R2:8:vllm-0.vllm:8000', { resource: 'R2', count: 8, pod: 'vllm-0.vllm:8000' }],
  ['R2:8:[::1]:8000', { resource: 'R2', count: 8, pod: '[::1]:8000' }],
  ['R2:8:8000:8000', { resource: 'R2', count: 8, pod: '8000:8000' }],
])('resource count %p is read', (text, parts) => {
  expect(parseResourceCount(text)).toEqual(parts)
})

test.each([
  ['A=1', { name: 'A', priority: 1 }],
  ['a/b:c=20', { name: 'a/b:c', priority: 20 }],
  ['a=b=3', { name: 'a=b', priority: 3 }],
])('priority %p is read', (text, parts) => {
  expect(parsePriority(text)).toEqual(parts)
})

const requirements = ['', 'R1:4', 'A=R1:4', 'prefill', 'prefill=', 'prefill/=R1:4', 'prefill=1R:4', 'prefill=R1']
const counts = ['', '-1', '1.5', '04', '4:0', '4 R1:5', '9999999999'].map((count) => `prefill=R1:${count}`)
const places = ['', 'pod', '-1', 'pod:', ':8000', 'pod:0', 'a:b:8000'].map((place) => `R1:1:${place}`)
const priorities = ['', 'A', 'A=', '=1', 'A=0', 'A=-1', 'A=1.5', 'A=x']

test.each([
  ...[...requirements, ...counts].map((text) => ['requirement', text, parseRequirement] as const),
  ...['', 'R1', 'R1:', 'R1:x', 'R 1:1', ...places].map((text) => ['resource count', text, parseResourceCount] as const),
  ...priorities.map((text) => ['priority', text, parsePriority] as const),
])('%s %p is refused', (_kind, text, parse) => {
  expect(parse(text)).toBeUndefined()
})
