import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect } from '@jest/globals'
import { findEnvoy } from '../../playground/install/find-envoy.ts'
import { packageRoot, toolsDir } from '../../playground/paths.ts'
import { runCommand } from '../../playground/run-command.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { clusterTool } from './rig/control-plane.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, kvClaim, projectImages } from './rig/workloads.ts'
import { describeWay } from './way.ts'

/** The chart with its own Envoy, installed by helm: mTLS between the two, users without rights, read-only root folders. */
let rig: Rig
let url: string

beforeAll(async () => {
  const envoy = await findEnvoy({ env: process.env, toolsDir: toolsDir() })
  rig = await startRig({
    ...(await projectImages()),
    'envoyproxy/envoy': {
      entrypoint: ['envoy'],
      mounts: { '/opt/envoy': dirname(envoy.command[0]) },
      env: { PATH: `/opt/envoy:${process.env['PATH']}` },
    },
  })
  await rig.apply(engines({ replicas: 2 }))
  const values = [
    'replicas=1',
    'engines.selector.app=engines',
    'kv.connector=llamacpp-slots',
    `kv.existingClaim=${kvClaim}`,
    'config.kv.prefillMsPerToken=1000',
    'envoy.enabled=true',
    'envoy.replicas=1',
  ]
  const chart = join(packageRoot(), 'deploy/helm/context-cache-gateway')
  const helm = join(dirname(clusterTool('kubectl')), 'helm')
  const outcome = await runCommand({
    command: [helm, 'install', 'ctx', chart, ...values.flatMap((value) => ['--set', value])],
    env: { PATH: process.env['PATH'], HOME: rig.folder, KUBECONFIG: rig.kubeconfigFile },
  })
  if (!outcome.ok) throw new Error(outcome.stderr)
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
  url = `http://${await rig.podAddress('-l', 'app.kubernetes.io/component=envoy')}:8000`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
