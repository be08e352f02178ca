import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { examine } from './doctor.ts'
import { installByPage } from './rig/follow-page.ts'
import { startIstiod } from './rig/istiod.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
import { describeUnderLoad } from './under-load.ts'
import { describeWay, testResponses } from './way.ts'

const envoys = 'gateway.networking.k8s.io/gateway-name=inference-gateway'
let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  const istiod = await startIstiod(rig)
  await rig.apply(engines({ replicas: 2 }))
  // As the page says for Istio.
  await installByPage(rig, 'InferencePool', ['inferencePool.istio=true'])
  const gateway = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: 'inference-gateway' },
    spec: { gatewayClassName: 'istio', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  }
  await rig.apply(stringify(gateway))
  url = `http://${await istiod.runGateway({ namespace: 'default', name: 'inference-gateway' })}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
testResponses(() => url)

test('doctor finds what Istio leaves out', async () => {
  const { findings } = await examine({ rig, url }, { envoys, adminPort: 19_901 })
  expect(findings).toEqual([expect.objectContaining({ check: 'slow-clients', severity: 'warning' })])
})

describeUnderLoad(() => ({ rig, url }), envoys)
