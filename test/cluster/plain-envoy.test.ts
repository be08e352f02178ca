import { afterAll, beforeAll, expect } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { installChart } from './rig/install-chart.ts'
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
  await installChart(rig, ['envoy.enabled=true'])
  url = `http://${await rig.serviceAddress('-l', 'app.kubernetes.io/component=envoy')}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
describeUnderLoad(() => ({ rig, url }), 'app.kubernetes.io/component=envoy')
