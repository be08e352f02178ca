import { expect, test } from '@jest/globals'
import { type EngineLoad, parseEngineMetrics } from '../../../src/routing/engine-metrics.ts'

const vllm = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="models/small"} 3.0
vllm:num_requests_waiting{engine="0",model_name="models/small"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="models/small"} 0.25
vllm:prompt_tokens_total{engine="0",model_name="models/small"} 9000.0`

const llamaServer = `llamacpp:requests_processing 1
llamacpp:requests_deferred 4
llamacpp:kv_cache_usage_ratio 0.5
`

const twoWorkers = `vllm:num_requests_running{engine="0"} 3
vllm:num_requests_running{engine="1"} 4
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.125`

test.each<[string, string, Partial<EngineLoad> | undefined]>([
  ['metrics of vLLM', vllm, { running: 3, waiting: 2, kvUsage: 0.25 }],
  ['metrics of llama-server', llamaServer, { running: 1, waiting: 4, kvUsage: 0.5 }],
  ['the sum of the requests and the highest usage of workers', twoWorkers, { running: 7, kvUsage: 0.25 }],
  [
    'the adapters of the newest report',
    `vllm:num_requests_running 0
vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.7e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters="c"} 1.8e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="older",waiting_lora_adapters=""} 1.6e+09`,
    { activeAdapters: new Set(['a', 'b', 'c']) },
  ],
  ['labels with braces, quotes and spaces', 'vllm:num_requests_running{a="b } \\" 9 {",x="\\\\"} 5', { running: 5 }],
  ['a sample with a timestamp', 'vllm:num_requests_running 5 1700000000000', { running: 5 }],
  ['an exponent', 'vllm:num_requests_running 1.2e+1', { running: 12 }],
  ['tabs and carriage returns', 'vllm:num_requests_running\t5\t\r\n', { running: 5 }],
  ['a usage above 1 as 1', 'vllm:kv_cache_usage_perc 1.5', { kvUsage: 1 }],
  ['nothing of an empty text', '', undefined],
  ['nothing of longer names', 'vllm:num_requests_running_total 5\nxvllm:num_requests_running 5', undefined],
  ['nothing of values that are no number', 'vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf', undefined],
  ['nothing of a negative value', 'vllm:num_requests_running -5', undefined],
  ['nothing of a line cut in its labels', 'vllm:num_requests_running{engine="0', undefined],
  ['nothing of a line cut before its value', 'vllm:num_requests_running', undefined],
  ['nothing of two values', 'vllm:num_requests_running 5 6 7', undefined],
  ['nothing of another format', '<html>\n{"error":"not found"}\n', undefined],
])('parseEngineMetrics reads %s', (_title, text, load) => {
  expect(parseEngineMetrics(text)).toEqual(load && { running: 0, waiting: 0, kvUsage: 0, ...load })
})
