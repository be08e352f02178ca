import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { examine } from './doctor.ts'
import { startCustomMetrics } from './rig/custom-metrics.ts'
import { installByPage, pageBlock, shell } from './rig/follow-page.ts'
import { metricsPages } from './rig/metrics-pages.ts'
import { versionNames } from './rig/other-version.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
import { describeUnderLoad, gateways, settled } from './under-load.ts'
import { body, describeWay, testResponses } from './way.ts'

/** The chart with its own Envoy, installed by helm: mTLS between the two, users without rights, read-only roots. */
let rig: Rig
let url: string

beforeAll(async () => {
  rig = await startRig(await projectImages())
  await rig.apply(engines({ replicas: 2 }))
  for (const operator of ['prometheus-operator', 'grafana-operator'] as const) await rig.installCrds(operator)
  await installByPage(rig, 'Plain Envoy')
  const [, service = '', port = ''] = /port-forward (\S+) \d+:(\d+)/.exec(await pageBlock('Plain Envoy')) ?? []
  url = `http://${await rig.kubectl('get', service, '-o', 'jsonpath={.spec.clusterIP}')}:${port}`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
testResponses(() => url)

test('doctor finds no mistake', async () => {
  const { findings } = await examine({ rig, url }, { envoys: 'app.kubernetes.io/component=envoy', adminPort: 19_901 })
  expect(findings).toEqual([])
})

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

test('a cluster with the kinds of Prometheus and Grafana has accepted alerts, monitor and dashboard', async () => {
  const kinds = ['prometheusrule', 'servicemonitor', 'grafanadashboard']
  const found = await rig.kubectl('get', kinds.join(','), '-o', 'name')
  expect(found.trim().split('\n')).toEqual(kinds.map((kind) => expect.stringContaining(`${kind}.`)))
})

test("the operators' API answers those who have the token that docs/kubernetes.md makes", async () => {
  await shell(rig, (await pageBlock("The operators' console")).replace(/^kubectl port-forward .*$/m, ''))
  await settled(rig, gateways, 2)
  const token = await shell(rig, `kubectl get secret operators -o go-template='{{index .data "token" | base64decode}}'`)
  const address = await rig.kubectl('get', 'pods', '-l', gateways, '-o', 'jsonpath={.items[0].status.podIP}')
  const ask = (headers: Record<string, string>) => call(`http://${address}:9090/api/overview`, { headers })
  expect((await ask({ authorization: 'Bearer another-token-altogether' })).status).toBe(401)
  expect((await ask({ authorization: `Bearer ${token}` })).status).toBe(200)
})

test('gateways become as many as their streams ask for, and fewer again without cutting a stream', async () => {
  await startCustomMetrics(rig)
  const before = (await metricsPages(rig, gateways)).map(({ pod }) => pod)
  const values = 'autoscaling.targetStreams=2,autoscaling.maxReplicas=4'
  await shell(rig, `${(await pageBlock('Autoscaling')).trim()} --set ${values}`)
  const streamed = { ...body, stream: true, max_tokens: 60 }
  const answers: string[] = []
  // The ext_proc stream of a create is open until its answer ends.
  const keepStreaming = async (goesOn: () => boolean): Promise<void> => {
    while (goesOn()) {
      const answer = await call(`${url}/v1/context`, { body: streamed })
      answers.push(`${answer.status} ${answer.text.slice(-14)}`)
    }
  }
  let [isBusy, isServing] = [true, true]
  const many = Array.from({ length: 8 }, () => keepStreaming(() => isBusy))
  const few = Array.from({ length: 2 }, () => keepStreaming(() => isServing))
  await settled(rig, gateways, 4)
  // Nobody was without them meanwhile.
  expect((await metricsPages(rig, gateways)).map(({ pod }) => pod)).toEqual(expect.arrayContaining(before))
  isBusy = false
  await Promise.all(many)
  await settled(rig, gateways, 2)
  isServing = false
  await Promise.all(few)
  expect(new Set(answers)).toEqual(new Set(['200 data: [DONE]\n\n']))
}, 600_000)
