import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { postAndLeave } from '../support/client.ts'
import { readMetric } from '../support/metrics.ts'
import { useScriptedStack } from '../support/use-stack.ts'
import { inUse, send, waiting } from './support.ts'

const { stack } = useScriptedStack({
  env: {
    CTX_LOG_LEVEL: 'warn',
    CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1',
    CTX_ADMISSION_RESOURCES: 'R1:10',
    CTX_ADMISSION_MAX_WAITING: '1000',
  },
})

const body = { model: 'A', prompt: 'Say this is a test' }
const headers = { 'x-session-ttl': '60' }

test('a thousand clients that disconnect at any moment leave no resource in use', async () => {
  for (let round = 0; round < 50; round += 1) {
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        postAndLeave(`${stack.url}/v1/completions`, body, { headers, afterMs: (round + index * 7) % 40 }),
      ),
    )
  }
  await eventually(async () => expect([await waiting(stack), await inUse(stack)]).toEqual([0, 0]))
  expect(await readMetric(stack, 'admission_leases_expired_total')).toMatchObject({ 'kind="prefill"': 0 })
  expect((await send(stack, 'A')).status).toBe(200)
})
