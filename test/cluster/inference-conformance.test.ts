import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { startChild } from '../../playground/child-process.ts'
import { packageRoot } from '../../playground/paths.ts'
import { clusterTool } from './rig/control-plane.ts'
import { startIstiod } from './rig/istiod.ts'
import { nodeMount, nodeProgram } from './rig/node-program.ts'
import { type Rig, startRig } from './rig/rig.ts'

const infrastructure = 'inference-conformance-infra'
/** What the chart makes for Istio, here for each picker of the suite. */
const pickerAuthority = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: picker-authority, namespace: istio-system }
spec:
  configPatches:
    - applyTo: CLUSTER
      match: { cluster: { portNumber: 9002 } }
      patch:
        operation: MERGE
        value:
          typed_extension_protocol_options:
            envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
              "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
              explicit_http_config: { http2_protocol_options: {} }
              http_filters:
                - name: picker-authority
                  typed_config:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
                    default_source_code:
                      inline_string: function envoy_on_request(handle) handle:headers():replace(":authority", "picker") end
                - name: envoy.filters.http.upstream_codec
                  typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec }
`
let rig: Rig
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conformance-'))
  const app = '/opt/context-cache-gateway'
  rig = await startRig({
    lwepp: {
      entrypoint: [nodeProgram, `${app}/test/cluster/conformance/picker.ts`],
      mounts: { ...nodeMount, [app]: packageRoot() },
    },
    'echo-basic': { entrypoint: [clusterTool('echo-basic')] },
  })
  const istiod = await startIstiod(rig)
  await rig.apply(pickerAuthority)
  await rig.kubectl('create', 'namespace', infrastructure)
  await istiod.runGateway({ namespace: infrastructure, name: 'conformance-primary' })
  await istiod.runGateway({ namespace: infrastructure, name: 'conformance-secondary' })
})
afterAll(async () => {
  await rig?.stop()
  await rm(folder, { recursive: true })
})

const report = z.object({
  profiles: z.array(z.object({ core: z.object({ statistics: z.object({ Failed: z.int(), Passed: z.int() }) }) })),
})

test('the suite of the inference extension passes with the gateway as picker', async () => {
  const file = join(folder, 'report.yaml')
  const suite = await startChild({
    name: 'inference-conformance',
    command: [
      clusterTool('inference-conformance'),
      '-test.v',
      '-gateway-class=istio',
      // istiod asks one picker for a route, also for one with two pools.
      '-skip-tests=GatewayWeightedAcrossTwoInferencePools',
      '-organization=context-cache-gateway',
      '-project=context-cache-gateway',
      '-version=v0.1.0',
      `-report-output=${file}`,
    ],
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: rig.kubeconfigFile },
    children: rig.children,
    onLine: (line) => rig.log(`suite: ${line}`),
  })
  await suite.exited
  const text = await readFile(file, 'utf8')
  // Kept in deploy/inference-pool when it changes.
  rig.log(text)
  const [profile] = report.parse(parse(text)).profiles
  expect(profile?.core).toMatchObject({ statistics: { Failed: 0, Passed: 13 } })
}, 1_600_000)
