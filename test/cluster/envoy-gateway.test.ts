import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { applyEnvoyGatewayFiles, startEnvoyGateway } from './rig/envoy-gateway.ts'
import { installChart } from './rig/install-chart.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
import { describeUnderLoad } from './under-load.ts'
import { body, create, describeWay, use } from './way.ts'

let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  await rig.apply(engines({ replicas: 2 }))
  await installChart(rig, ['tls.enabled=false'])
  await startEnvoyGateway(rig)
  url = `http://${await applyEnvoyGatewayFiles(rig)}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
describeUnderLoad(() => ({ rig, url }), 'gateway.envoyproxy.io/owning-gateway-name=context-cache')

test('a body of 1 MiB passes, one of 17 MiB does not', async () => {
  const id = await create(url)
  const padded = (bytes: number) => ({ ...body, user: 'x'.repeat(bytes) })
  const send = (bytes: number) =>
    call(`${url}/v1/completions`, { body: padded(bytes), headers: { 'x-session-id': id } })
  expect((await send(1 << 20)).status).toBe(200)
  expect((await send(17 << 20)).status).toBe(413)
})

test('without a gateway turns go on, and contexts are answered 503', async () => {
  const id = await create(url)
  await rig.kubectl('scale', 'deployment', 'context-cache-gateway', '--replicas=0')
  await rig.kubectl('wait', 'pods', '-l', 'app.kubernetes.io/component=gateway', '--for=delete', '--timeout=60s')
  expect((await use(url, id)).status).toBe(200)
  expect((await call(`${url}/v1/context/${id}`)).status).toBe(503)
})
