import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { FleetDescription } from '../../../../playground/vllm/fleet-description.ts'
import { readyText } from '../../../../playground/vllm/run-vllm-fleet.ts'
import { obtainVllmFleet } from '../../../../playground/vllm/start-vllm-fleet.ts'
import { useFolder } from '../../../support/use-folder.ts'

const pod = (number: number): FleetDescription['pods'][number] => ({
  address: `127.0.0.1:810${number + 1}`,
  url: `http://127.0.0.1:810${number + 1}`,
  lmcacheInstance: `pod-${number}`,
})
const description: FleetDescription = {
  pods: [pod(0), pod(1)],
  coordinatorUrl: 'http://127.0.0.1:9200',
  l2Directory: '/run/l2',
  modelPath: 'models/small',
  servedModelName: 'small-random',
  chunkTokens: 128,
  controlSocket: '/tmp/x/control',
  logFolder: '/run/logs',
}

test('the ready text has the whole line that starts the gateway', () => {
  const text = readyText(description, '/run/fleet.json')
  expect(text.split('\n')[0]).toMatch(/^ready {2}pods 127\.0\.0\.1:8101, 127\.0\.0\.1:8102 {2}model small-random/)
  expect(text).toContain(
    '  PODS=127.0.0.1:8101,127.0.0.1:8102 CONNECTOR=lmcache LMCACHE_URL=http://127.0.0.1:9200 LMCACHE_INSTANCES=127.0.0.1:8101=pod-0,127.0.0.1:8102=pod-1 make run\n',
  )
  expect(text).toContain('  VLLM_FLEET=/run/fleet.json make test-vllm')
})

describe('obtainVllmFleet with VLLM_FLEET', () => {
  const folder = useFolder()

  const written = async (content: unknown): Promise<string> => {
    const file = join(folder(), 'fleet.json')
    await writeFile(file, JSON.stringify(content))
    return file
  }
  const obtain = (file: string) => obtainVllmFleet({ env: { VLLM_FLEET: file }, onLine: () => undefined })

  test('gives the fleet that runs', async () => {
    const fleet = await obtain(await written(description))
    expect(fleet.description).toEqual(description)
    await expect(fleet.stop()).resolves.toBeUndefined()
  })

  test.each([
    { name: 'a file that is not there', content: undefined },
    { name: 'something else', content: { pods: [] } },
  ])('$name is an error', async ({ content }) => {
    const file = content === undefined ? join(folder(), 'none') : await written(content)
    await expect(obtain(file)).rejects.toThrow()
  })
})
