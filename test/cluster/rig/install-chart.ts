import { dirname, join } from 'node:path'
import { packageRoot } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { clusterTool } from './control-plane.ts'
import type { Rig } from './rig.ts'
import { kvClaim, redis } from './workloads.ts'

/** Installs the chart by helm, for the engines and the Redis of workloads.ts, and waits until all Deployments are available. */
export const installChart = async (rig: Rig, values: readonly string[]): Promise<void> => {
  const all = [
    'redis.existingSecret=redis-url',
    'engines.selector.app=engines',
    'kv.connector=llamacpp-slots',
    `kv.existingClaim=${kvClaim}`,
    // A load is worthwhile, however short the prompts of a test are.
    'config.kv.prefillMsPerToken=1000',
    ...values,
  ]
  await rig.apply(redis())
  const helm = join(dirname(clusterTool('kubectl')), 'helm')
  const chart = join(packageRoot(), 'deploy/helm/context-cache-gateway')
  const outcome = await runCommand({
    command: [helm, 'install', 'context-cache-gateway', chart, ...all.flatMap((value) => ['--set', value])],
    env: { PATH: process.env['PATH'], HOME: rig.folder, KUBECONFIG: rig.kubeconfigFile },
  })
  if (!outcome.ok) throw new Error(outcome.stderr)
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
}
