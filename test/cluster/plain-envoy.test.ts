import { afterAll, beforeAll, expect } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { installByPage, pageBlock } from './rig/follow-page.ts'
import { versionNames } from './rig/other-version.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
import { describeUnderLoad } from './under-load.ts'
import { describeWay } from './way.ts'

/** The chart with its own Envoy, installed by helm: mTLS between the two, users without rights, read-only root folders. */
let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  await rig.apply(engines({ replicas: 2 }))
  await installByPage(rig, 'Plain Envoy')
  const [, service = '', port = ''] = /port-forward (\S+) \d+:(\d+)/.exec(await pageBlock('Plain Envoy')) ?? []
  url = `http://${await rig.kubectl('get', service, '-o', 'jsonpath={.spec.clusterIP}')}:${port}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
const chart = 'deploy/helm/context-cache-gateway'
describeUnderLoad(
  () => ({ rig, url }),
  'app.kubernetes.io/component=envoy',
  (_part, versions) => {
    if (Object.values(versions).every((version) => version === 'installed'))
      return 'helm rollback context-cache-gateway 1'
    const from = versions.envoys === 'other' ? `$HOME/other/${chart}` : chart
    const tag = versionNames[versions.gateways]
    return `helm upgrade context-cache-gateway ${from} --reset-then-reuse-values --set image.tag=${tag}`
  },
)
