import { dirname } from 'node:path'
import { afterAll, beforeAll, expect } from '@jest/globals'
import { findEnvoy } from '../../playground/install/find-envoy.ts'
import { toolsDir } from '../../playground/paths.ts'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { installChart } from './rig/install-chart.ts'
import { type Rig, startRig } from './rig/rig.ts'
import { engines, projectImages } from './rig/workloads.ts'
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
  await installChart(rig, ['envoy.enabled=true', 'envoy.replicas=1'])
  url = `http://${await rig.podAddress('-l', 'app.kubernetes.io/component=envoy')}:8000`
  await eventually(async () => expect((await call(`${url}/v1/context`)).status).toBe(200))
})
afterAll(() => rig?.stop())

describeWay(() => ({ rig, url }))
