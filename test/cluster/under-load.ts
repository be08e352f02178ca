import { beforeAll, expect, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Load, startLoad } from './load.ts'
import { shell } from './rig/follow-page.ts'
import { metricsPages } from './rig/metrics-pages.ts'
import { makeOtherVersion, otherHeader, versionNames } from './rig/other-version.ts'
import type { Rig } from './rig/rig.ts'
import { type Bed, body } from './way.ts'

/** Label of the gateways. */
export const gateways = 'app.kubernetes.io/component=gateway'

/** Waits until the pods that the label selects are as many as are wanted, all of them ready. */
export const settled = async (rig: Rig, label: string, replicas: number): Promise<void> => {
  await eventually(
    async () => {
      const path = 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
      const ready = (await rig.kubectl('get', 'pods', '-l', label, '-o', path)).trim().split('\n')
      expect(ready).toEqual(Array.from({ length: replicas }, () => 'True'))
    },
    { timeoutMs: 120_000 },
  )
}

/** Rolling updates of the gateways in a row. */
const rolls = Number(process.env['ROLLS'] ?? 1)

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

type Part = 'gateways' | 'envoys'

/** What runs of gateways and of Envoy's parts. */
export type Versions = Readonly<Record<Part, keyof typeof versionNames>>

/** Commands that bring a part from one version to another, such that `versions` run. */
export type Bring = (part: Part, versions: Versions) => string

const orders: readonly { readonly name: string; readonly parts: readonly Part[] }[] = [
  { name: 'gateways, then what Envoy runs,', parts: ['gateways', 'envoys'] },
  { name: 'what Envoy runs, then gateways,', parts: ['envoys', 'gateways'] },
]

/** One part after the other, to the other version and back: each version of the gateway meets both of Envoy's parts. */
const upgrade = async ({ rig, url }: Bed, load: Load, envoys: string, bring: Bring, parts: readonly Part[]) => {
  let versions: Versions = { gateways: 'installed', envoys: 'installed' }
  for (const version of ['other', 'installed'] as const) {
    for (const part of parts) {
      versions = { ...versions, [part]: version }
      await shell(rig, bring(part, versions))
      await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
      for (const label of [gateways, envoys]) await settled(rig, label, 2)
      await eventually(async () => {
        const answers = await Promise.all(Array.from({ length: 10 }, () => call(`${url}/v1/completions`, { body })))
        const header = versions.envoys === 'other' ? 'other' : null
        expect(new Set(answers.map(({ headers }) => headers.get(otherHeader)))).toEqual(new Set([header]))
        const pages = await metricsPages(rig, gateways)
        const found = pages.map(({ page }) => /^context_cache_build_info\{version="([^"]*)"/m.exec(page)?.[1])
        expect(new Set(found)).toEqual(new Set([versionNames[versions.gateways]]))
      })
      await load.goOn()
    }
  }
}

interface Disturbance {
  readonly name: string
  readonly run: (rig: Rig, load: Load, url: string) => Promise<void>
}

/** What happens to a cluster while it serves. */
const disturbances = (envoys: string, bring?: Bring): readonly Disturbance[] => [
  ...orders.flatMap(({ name, parts }) =>
    bring === undefined
      ? []
      : [
          {
            name: `${name} are upgraded and rolled back`,
            run: (rig: Rig, load: Load, url: string) => upgrade({ rig, url }, load, envoys, bring, parts),
          },
        ],
  ),
  {
    name: 'gateways are updated',
    run: async (rig, load) => {
      for (let done = 0; done < rolls; done += 1) {
        await roll(rig, gateways)
        await load.goOn()
      }
    },
  },
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

/**
 * What holds of each way into a cluster while it changes under load. `envoys`: label of its Envoys and of their
 * Deployment. Without `bring`, nothing is upgraded.
 */
export const describeUnderLoad = (bed: () => Bed, envoys: string, bring?: Bring): void => {
  if (bring !== undefined) beforeAll(() => makeOtherVersion(bed().rig))

  test.each(disturbances(envoys, bring))(
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
    600_000 + rolls * 60_000,
  )
}
