import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { packageRoot } from '../../playground/paths.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'
import { examine } from './doctor.ts'
import { startEnvoyGateway } from './rig/envoy-gateway.ts'
import { installByPage } from './rig/follow-page.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
import { describeUnderLoad } from './under-load.ts'
import { body, create, describeWay, respond, testResponses, use } from './way.ts'

const envoys = 'gateway.envoyproxy.io/owning-gateway-name=context-cache'
let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  await rig.apply(engines({ replicas: 2 }))
  await startEnvoyGateway(rig)
  // As own-filters.yaml says.
  await installByPage(rig, 'Envoy Gateway', ['config.tenant.principalHeader=x-principal'])
  await rig.apply(await readFile(join(packageRoot(), 'deploy/envoy-gateway/responses.yaml'), 'utf8'))
  url = `http://${await rig.serviceAddress('-l', envoys)}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
testResponses(() => url)

const findings = async () => (await examine({ rig, url }, { envoys, adminPort: 19_000 })).findings

test('doctor finds that nothing verifies callers yet', async () => {
  expect(await findings()).toEqual([
    expect.objectContaining({ check: 'spoofed-headers', problem: expect.stringContaining('x-principal') }),
  ])
})

const chart = 'deploy/helm/context-cache-gateway'
describeUnderLoad(
  () => ({ rig, url }),
  envoys,
  (part, versions) => {
    const from = versions[part] === 'other' ? '$HOME/other/' : ''
    if (part === 'envoys') {
      const lua = `kubectl create configmap context-cache-lua --from-file=lua=${from}deploy/envoy/context-cache.lua`
      return `${lua} --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -
      kubectl apply --server-side -f ${from}deploy/envoy-gateway/context-cache.yaml`
    }
    return from === ''
      ? 'helm rollback context-cache-gateway 1'
      : `helm upgrade context-cache-gateway ${from}${chart} --reset-then-reuse-values`
  },
)

test('a body of 1 MiB passes, one of 17 MiB does not', async () => {
  const id = await create({ url })
  const padded = (bytes: number) => ({ ...body, user: 'x'.repeat(bytes) })
  const send = (bytes: number) =>
    call(`${url}/v1/completions`, { body: padded(bytes), headers: { 'x-session-id': id } })
  expect((await send(1 << 20)).status).toBe(200)
  expect((await send(17 << 20)).status).toBe(413)
})

test('without a gateway turns go on, but for those that continue a response, and contexts are answered 503', async () => {
  const id = await create({ url })
  await rig.kubectl('scale', 'deployment', 'context-cache-gateway', '--replicas=0')
  await rig.kubectl('wait', 'pods', '-l', 'app.kubernetes.io/component=gateway', '--for=delete', '--timeout=60s')
  expect((await use({ url }, id)).status).toBe(200)
  expect((await call(`${url}/v1/context/${id}`)).status).toBe(503)
  expect((await respond(url)).status).toBe(200)
  expect((await respond(url, { previous_response_id: 'resp_1' })).status).toBe(503)
})

test('filters of your own answer preflights, refuse callers without a token, and limit those with one', async () => {
  await rig.kubectl('scale', 'deployment', 'context-cache-gateway', '--replicas=1')
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
  const issuer = await startTokenIssuer()
  const keys = await (await fetch(`http://127.0.0.1:${issuer.port}`)).text()
  issuer.stop()
  const local = `localJWKS: { type: Inline, inline: '${keys}' }`
  const filters = await readFile(join(packageRoot(), 'deploy/envoy-gateway/own-filters.yaml'), 'utf8')
  await rig.apply(filters.replace(/remoteJWKS: .*/, local))

  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(401))
  const origin = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
  // There are two Envoys, which learn of a change one after the other.
  const preflight = () => call(`${url}/v1/context`, { method: 'OPTIONS', headers: origin })
  await eventually(async () => expect((await preflight()).status).toBe(200))
  const as = (sub: string) => ({ authorization: `Bearer ${issuer.token({ sub })}` })
  const list = (sub: string) => call(`${url}/v1/context`, { headers: as(sub) })
  await eventually(async () => expect((await list(`a caller of ${performance.now()}`)).status).toBe(200))
  await eventually(async () => expect((await list('eager')).status).toBe(429))
  expect((await list('ann')).status).toBe(200)
  await eventually(async () => expect(await findings()).toEqual([]))
})
