import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ensureRandomModel } from '../../../../playground/engine/gguf/ensure-random-model.ts'
import { defaultRandomModel } from '../../../../playground/engine/gguf/random-model.ts'
import { findLlamaServer } from '../../../../playground/launcher/find-llama-server.ts'
import { requireTool } from '../../../../playground/launcher/server-tool.ts'
import {
  type RunningLlamaServer,
  startLlamaPods,
  startLlamaServer,
} from '../../../../playground/launcher/start-llama-server.ts'
import { toolsDir } from '../../../../playground/launcher/tools-dir.ts'
import { isAlive } from './support.ts'

const llama = await findLlamaServer({ env: process.env, toolsDir: toolsDir(), report: (line) => console.log(line) })
if (!llama.found) console.log(`left out: ${llama.reason}`)
const describeWhereFound = llama.found ? describe : describe.skip

describeWhereFound('startLlamaPods', () => {
  let dir = ''
  let pods: readonly RunningLlamaServer[] = []
  let modelPath = ''

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'launcher-llama-'))
    const shape = { ...defaultRandomModel, hiddenSize: 64, layers: 2, heads: 1, feedForwardSize: 128 }
    modelPath = (await ensureRandomModel(dir, shape)).path
    pods = await startLlamaPods({ tool: requireTool(llama), modelPath, slotSavePath: join(dir, 'kv'), count: 2 })
  }, 60_000)
  afterAll(async () => {
    await Promise.all(pods.map((pod) => pod.child.kill()))
    await rm(dir, { recursive: true, force: true })
  })

  const post = async (url: string, body: unknown) => {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, body: await response.json() }
  }

  test('a context saved by one pod is loaded by the other', async () => {
    const [first, second] = pods.map((pod) => pod.url)
    const request = { prompt: 'A context that is moved. '.repeat(20), max_tokens: 4, temperature: 0, id_slot: 1 }
    const cold = await post(`${first}/v1/completions`, request)
    const saved = await post(`${first}/slots/1?action=save`, { filename: 'one.bin' })
    const restored = await post(`${second}/slots/1?action=restore`, { filename: 'one.bin' })
    const warm = await post(`${second}/v1/completions`, request)
    expect(cold.body).toMatchObject({ usage: { prompt_tokens: 500, prompt_tokens_details: { cached_tokens: 0 } } })
    expect(saved).toMatchObject({ status: 200, body: { n_saved: 503 } })
    expect(restored).toMatchObject({ status: 200, body: { n_restored: 503 } })
    expect(warm.body).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 499 } } })
    expect((await stat(join(dir, 'kv', 'one.bin'))).size).toBe((saved.body as { n_written: number }).n_written)
  })

  test('a model that is none is told with what the server printed, and no process stays', async () => {
    const options = { tool: requireTool(llama), modelPath: join(dir, 'none.gguf'), slotSavePath: join(dir, 'kv') }
    await expect(startLlamaServer(options)).rejects.toThrow(/llama-server ended .*none\.gguf/s)
  })

  test('when one pod does not start, the others do not stay', async () => {
    const taken = pods[0]?.port
    const options = { tool: requireTool(llama), modelPath, slotSavePath: join(dir, 'kv'), count: 2 }
    await expect(startLlamaPods({ ...options, extraArguments: ['--port', String(taken)] })).rejects.toThrow(
      /llama-server/,
    )
  })

  test('a stopped pod is gone', async () => {
    const pod = await startLlamaServer({ tool: requireTool(llama), modelPath, slotSavePath: join(dir, 'kv') })
    await pod.child.stop()
    expect(isAlive(pod.child.pid)).toBe(false)
  })
})
