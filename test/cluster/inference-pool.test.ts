import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from '@jest/globals'
import { stringify } from 'yaml'
import { packageRoot } from '../../playground/paths.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { startIstiod } from './rig/istiod.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, gateways, projectImages } from './rig/workloads.ts'
import { describeWay } from './way.ts'

let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  const kvDirectory = join(rig.folder, 'kv')
  await mkdir(kvDirectory)
  const istiod = await startIstiod(rig)
  await rig.apply(engines({ kvDirectory, replicas: 2 }))
  const env = { CTX_ROUTING_KUBERNETES_INFERENCE_POOL: 'engines', CTX_LISTEN_EXTPROC_ANY_AUTHORITY: 'true' }
  await rig.apply(gateways({ kvDirectory, replicas: 1, env }))
  const gateway = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: 'inference-gateway' },
    spec: { gatewayClassName: 'istio', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  }
  await rig.apply(stringify(gateway))
  await rig.apply(await readFile(join(packageRoot(), 'deploy/inference-pool/context-cache.yaml'), 'utf8'))
  url = `http://${await istiod.runGateway({ namespace: 'default', name: 'inference-gateway' })}`
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
