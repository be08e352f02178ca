import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { applyEnvoyGatewayFiles, startEnvoyGateway } from './rig/envoy-gateway.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, gateways, projectImages } from './rig/workloads.ts'
import { body, create, describeWay, use } from './way.ts'

let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  const kvDirectory = join(rig.folder, 'kv')
  await mkdir(kvDirectory)
  await rig.apply(engines({ kvDirectory, replicas: 2 }))
  const env = { CTX_ROUTING_KUBERNETES_SERVICE: 'engines' }
  await rig.apply(gateways({ kvDirectory, replicas: 1, env }))
  await startEnvoyGateway(rig)
  url = await applyEnvoyGatewayFiles(rig, '1.40.0')
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=60s')
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))

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
  await rig.kubectl('wait', 'pods', '-l', 'app=context-cache-gateway', '--for=delete', '--timeout=60s')
  expect((await use(url, id)).status).toBe(200)
  expect((await call(`${url}/v1/context/${id}`)).status).toBe(503)
})
