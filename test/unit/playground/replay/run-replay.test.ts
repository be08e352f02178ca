import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { runReplay } from '../../../../playground/replay/run-replay.ts'
import { useFolder } from '../../../support/use-folder.ts'

const folder = useFolder()
beforeEach(async () => {
  const line = (timestamp: number, blocks: readonly number[]): string =>
    JSON.stringify({ timestamp, input_length: 512 * blocks.length, output_length: 3, hash_ids: blocks })
  await writeFile(join(folder(), 'trace'), [line(0, [1, 2]), line(60_000, [1, 2, 3])].join('\n'))
})

const run = async (...args: readonly string[]) => {
  const printed: string[] = []
  const failed: string[] = []
  const exitCode = await runReplay({
    args,
    print: (text) => {
      printed.push(text)
      return 0
    },
    fail: (text) => failed.push(text),
  })
  return { exitCode, printed: printed.join('\n'), failed: failed.join('\n') }
}

describe('the command replay', () => {
  test('prints a table with a row for each policy', async () => {
    const { exitCode, printed } = await run(join(folder(), 'trace'), '--policy=all', '--store-blocks=2')
    expect(exitCode).toBe(0)
    expect(printed).toContain('2 requests, 1 conversations, 5 blocks of 512 tokens; block hit ratio at most 0.400')
    expect(printed).toContain('a store of 2 blocks, which alone would have 0.400 of all')
    expect(printed).toMatch(/^policy +TTFT mean +p50 +p90 +p99 +block hits +in pod +load s +prefill s +busy +balance$/m)
    expect(printed).toMatch(/^predicted-ttft +0\.08 s +0\.05 s +0\.10 s +0\.10 s +0\.400 +0\.400 +0 +0 +0 % +8\.00$/m)
    expect(printed.split('\n').slice(6)).toHaveLength(7)
  })

  test('prints the figures of turns, where pods have slots', async () => {
    const { printed } = await run(
      join(folder(), 'trace'),
      '--slots=2',
      '--processors=1',
      '--wait-for-answers',
      '--pods=1',
    )
    expect(printed).toContain('1 pods of 2 slots on 1 processors, turns wait for answers, a store')
    expect(printed).toMatch(/^policy +turns +TTFT p50 +p90 +max +anew +waits p50 +p90 +no slot$/m)
    expect(printed).toMatch(/^predicted-ttft +1 later +0\.10 s +0\.10 s +0\.10 s +0\.0 % +0\.00 s +0\.00 s +0$/m)
    expect(printed).toMatch(/^predicted-ttft +1 first +0\.15 s +0\.15 s +0\.15 s +– +0\.00 s +0\.00 s +0$/m)
  })

  test('writes JSON, too', async () => {
    const path = join(folder(), 'out.json')
    await run(join(folder(), 'trace'), '--json', path)
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      trace: { requests: 2, blocks: 5, highestHitRatio: 0.4, storeHitRatio: 0.4, leastTokens: 1_536, seconds: 60 },
      fleet: { pods: 8, podBlocks: 2_000, storeBlocks: null },
      load: { withoutReuse: 2_560 / 80_000 / 60 },
      results: [{ policy: 'predicted-ttft', blockHitRatio: 0.4, requests: 2, conversations: 1 }],
    })
  })
})
