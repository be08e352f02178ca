import { expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Load, startLoad } from './load.ts'
import { shell } from './rig/follow-page.ts'
import type { Rig } from './rig/rig.ts'
import { type Bed, body } from './way.ts'

/** Waits until the pods that the label selects are as many as are wanted, all of them ready. */
const settled = async (rig: Rig, label: string, replicas: number): Promise<void> => {
  await eventually(
    async () => {
      const path = 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
      const ready = (await rig.kubectl('get', 'pods', '-l', label, '-o', path)).trim().split('\n')
      expect(ready).toEqual(Array.from({ length: replicas }, () => 'True'))
    },
    { timeoutMs: 120_000 },
  )
}

/** A rolling update of the Deployments that the label selects, with two pods. */
const roll = async (rig: Rig, label: string): Promise<void> => {
  await rig.kubectl('rollout', 'restart', 'deployment', '-l', label)
  await rig.kubectl('rollout', 'status', 'deployment', '-l', label, '--timeout=120s')
  await settled(rig, label, 2)
}

const scale = async (rig: Rig, replicas: number): Promise<void> => {
  await rig.kubectl('scale', 'deployment/engines', `--replicas=${replicas}`)
  await settled(rig, 'app=engines', replicas)
}

/** Commands that bring gateways, or Envoy's parts, to another version, and back. */
interface Versions {
  readonly gateways: readonly [string, string]
  readonly envoys: readonly [string, string]
}

/** Prints what makes the Lua file of the other version show itself in answers. */
export const nextLua = `echo 'local respond = envoy_on_response
function envoy_on_response(handle) handle:headers():add("x-parts", "next") respond(handle) end'`

/** Gateways go first in both directions: each version of them meets both versions of Envoy's parts. */
const upgrade = (envoys: string, versions: Versions): Disturbance => ({
  name: 'gateways, then what Envoy runs, are upgraded and rolled back',
  run: async (rig, load, url) => {
    for (const direction of [0, 1]) {
      for (const part of ['gateways', 'envoys'] as const) {
        await shell(rig, versions[part][direction] ?? '')
        await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
        for (const label of ['app.kubernetes.io/component=gateway', envoys]) await settled(rig, label, 2)
        const isNext = (part === 'envoys') === (direction === 0)
        await eventually(async () => {
          const answers = await Promise.all(Array.from({ length: 10 }, () => call(`${url}/v1/completions`, { body })))
          const parts = new Set(answers.map(({ headers }) => headers.get('x-parts')))
          expect([...parts]).toEqual([isNext ? 'next' : null])
        })
        await load.goOn()
      }
    }
  },
})

interface Disturbance {
  readonly name: string
  readonly run: (rig: Rig, load: Load, url: string) => Promise<void>
}

/** What happens to a cluster while it serves. */
const disturbances = (envoys: string, versions?: Versions): readonly Disturbance[] => [
  ...(versions === undefined ? [] : [upgrade(envoys, versions)]),
  { name: 'gateways are updated', run: (rig) => roll(rig, 'app.kubernetes.io/component=gateway') },
  { name: 'engines are updated', run: (rig) => roll(rig, 'app=engines') },
  { name: 'Envoys are updated', run: (rig) => roll(rig, envoys) },
  {
    name: 'a node is drained',
    run: async (rig) => {
      // The Redis of the rig is one pod: without it no context is made.
      const store = await rig.kubectl('get', 'pods', '-l', 'app=redis', '-o', 'jsonpath={.items[0].spec.nodeName}')
      const node = store === 'rig-0' ? 'rig-1' : 'rig-0'
      await rig.kubectl('drain', node, '--delete-emptydir-data', '--force', '--timeout=150s')
      await rig.kubectl('wait', 'deployment', '--all', '--for=condition=Available', '--timeout=60s')
      await rig.kubectl('uncordon', node)
    },
  },
  {
    name: 'engines are scaled from two to four to one',
    run: async (rig) => {
      for (const replicas of [4, 1, 2]) await scale(rig, replicas)
    },
  },
  {
    name: 'Redis is restarted',
    run: async (rig, load) => {
      load.stopCreating()
      await load.goOn()
      await rig.kubectl('rollout', 'restart', 'deployment/redis')
      await rig.kubectl('rollout', 'status', 'deployment/redis', '--timeout=60s')
    },
  },
]

/** What holds of each way into a cluster while it changes under load. `envoys`: label of its Envoys and of their Deployment. */
export const describeUnderLoad = (bed: () => Bed, envoys: string, versions?: Versions): void => {
  test.each(disturbances(envoys, versions))(
    'no request fails while $name',
    async ({ name, run }) => {
      const { rig, url } = bed()
      const load = startLoad(url)
      await load.goOn()
      await run(rig, load, url)
      await load.goOn()
      const { sent, outcomes, failures } = await load.stop()
      rig.log(`under load: ${name}: ${sent} requests, ${failures.length} failures, ${JSON.stringify([...outcomes])}`)
      for (const failure of failures) rig.log(`under load: ${name}: ${failure}`)
      expect(failures).toEqual([])
      // Nothing is forgotten.
      expect([...outcomes.keys()]).not.toContain('miss; reason=session_not_found')
    },
    600_000,
  )
}
