import { describe, expect, test } from '@jest/globals'
import { parseEngineMetrics } from '../../../src/routing/engine-metrics.ts'

const none = { running: 0, waiting: 0, kvUsage: 0 }

describe('parseEngineMetrics', () => {
  test.each([
    {
      name: 'vLLM',
      text: [
        '# HELP vllm:num_requests_running Number of requests in model execution batches.',
        '# TYPE vllm:num_requests_running gauge',
        'vllm:num_requests_running{engine="0",model_name="models/small"} 3.0',
        'vllm:num_requests_waiting{engine="0",model_name="models/small"} 2.0',
        'vllm:kv_cache_usage_perc{engine="0",model_name="models/small"} 0.25',
        'vllm:prompt_tokens_total{engine="0",model_name="models/small"} 9000.0',
      ].join('\n'),
      load: { running: 3, waiting: 2, kvUsage: 0.25 },
    },
    {
      name: 'llama-server',
      text: 'llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\nllamacpp:kv_cache_usage_ratio 0.5\n',
      load: { running: 1, waiting: 4, kvUsage: 0.5 },
    },
    {
      name: 'several workers: requests add up, the fullest cache counts',
      text: [
        'vllm:num_requests_running{engine="0"} 3',
        'vllm:num_requests_running{engine="1"} 4',
        'vllm:kv_cache_usage_perc{engine="0"} 0.25',
        'vllm:kv_cache_usage_perc{engine="1"} 0.125',
      ].join('\n'),
      load: { running: 7, waiting: 0, kvUsage: 0.25 },
    },
    {
      name: 'labels that hold braces, quotes and spaces',
      text: 'vllm:num_requests_running{model_name="a } \\" 9 {",x="\\\\"} 5',
      load: { ...none, running: 5 },
    },
    { name: 'a timestamp', text: 'vllm:num_requests_running 5 1700000000000', load: { ...none, running: 5 } },
    { name: 'an exponent', text: 'vllm:num_requests_running 1.2e+1', load: { ...none, running: 12 } },
    { name: 'tabs and carriage returns', text: 'vllm:num_requests_running\t5\t\r\n', load: { ...none, running: 5 } },
    { name: 'a cache that is fuller than full', text: 'vllm:kv_cache_usage_perc 1.5', load: { ...none, kvUsage: 1 } },
    { name: 'nothing', text: '', load: none },
    { name: 'a longer name', text: 'vllm:num_requests_running_total 5\nxvllm:num_requests_running 5', load: none },
    { name: 'no number', text: 'vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf', load: none },
    { name: 'a negative number', text: 'vllm:num_requests_running -5', load: none },
    { name: 'a line that breaks off in its labels', text: 'vllm:num_requests_running{engine="0', load: none },
    { name: 'a line that breaks off before its value', text: 'vllm:num_requests_running', load: none },
    { name: 'two values', text: 'vllm:num_requests_running 5 6 7', load: none },
    { name: 'something else', text: '<html>\n{"error":"not found"}\n', load: none },
  ])('$name', ({ text, load }) => {
    expect(parseEngineMetrics(text)).toEqual(load)
  })
})
