import { afterAll, expect, test } from '@jest/globals'
import { type RunningGateway, startGateway } from '../../../playground/start-gateway.ts'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, prompt, untilStored, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack()
let stranger: RunningGateway | undefined
afterAll(() => stranger?.child.stop())

test('a gateway with another session store leaves the folder of stored KV alone, and says so', async () => {
  const body = { model, prompt: prompt(40), max_tokens: 2 }
  const id = await createdId(stack, { body })
  await untilStored(stack, id, 1)
  const files = await stack.kvFiles()
  const lines: string[] = []
  const start = () =>
    startGateway({
      env: {
        PATH: process.env['PATH'],
        PODS: stack.pods.map(({ address }) => address).join(','),
        KV_DIR: stack.kvDirectory,
        CTX_REAPER_INTERVAL_MS: '20',
        CTX_KV_CALL_TIMEOUT_MS: '500',
        CTX_REAPER_ANNOUNCE_GRACE_MS: '600',
      },
      onLine: (line) => lines.push(line),
    })

  stranger = await start()
  const { body: readiness } = await call(`${stranger.adminUrl}/readyz`)
  await eventually(async () => {
    // Several sweeps for orphans.
    const { text } = await call(`${stranger?.adminUrl}/metrics`)
    expect(Number(/store_duration_seconds_count\{op="claim"\} (\d+)/.exec(text)?.[1])).toBeGreaterThan(150)
  })

  expect(readiness).toMatchObject({
    ready: true,
    warnings: [{ kind: 'kv_folder_foreign', text: expect.stringContaining('belongs to another session store') }],
  })
  expect(lines.filter((line) => line.includes('belongs to another session store'))).toHaveLength(1)
  expect(await stack.kvFiles()).toEqual(files)
  expect(cacheLine(await use(stack, id, { body }))).toContain('hit')
})
