import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { packageRoot } from '../../playground/paths.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { pageBlock, shell } from './rig/follow-page.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { isVllmInstalled, vllmImages } from './rig/vllm.ts'
import { projectImages } from './rig/workloads.ts'
import { describeWay } from './way.ts'

const model = 'Qwen/Qwen3-8B'
const manifest = 'deploy/engines/vllm-lmcache.yaml'

/** The manifest, with less memory than a GPU's machine has, and engines that end sooner. */
const applyEngines = async (rig: Rig, command: string): Promise<void> => {
  const text = await readFile(join(packageRoot(), manifest), 'utf8')
  const file = join(rig.folder, 'vllm-lmcache.yaml')
  await writeFile(file, text.replace('--l1-size-gb=20', '--l1-size-gb=1').replaceAll('seconds: 600', 'seconds: 5'))
  // The operator of GPUs makes it.
  await rig.apply('apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: { name: nvidia }\nhandler: nvidia')
  await shell(rig, command.replace(manifest, file))
  await eventually(() => rig.kubectl('rollout', 'status', 'deployment', '--timeout=150s'), { timeoutMs: 600_000 })
}

if (!isVllmInstalled()) test.todo('vLLM is not installed (make vllm-up installs it): what holds of it in a cluster')
else {
  describe('vLLM with LMCache, behind the chart with its own Envoy', () => {
    let rig: Rig
    let url: string
    beforeAll(async () => {
      rig = await startRig({ ...(await projectImages()), ...(await vllmImages(model)) })
      const [engines = '', gateway = ''] = (await pageBlock('vLLM with LMCache')).split(/^(?=helm)/m)
      await applyEngines(rig, engines)
      await shell(rig, gateway)
      await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
      url = `http://${await rig.serviceAddress('-l', 'app.kubernetes.io/component=envoy')}`
      await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
    }, 900_000)
    afterAll(() => rig?.stop())

    describeWay(() => ({ rig, url, model }))
  })
}
