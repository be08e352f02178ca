import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { packageRoot } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'
import { clusterTool } from './control-plane.ts'
import type { Rig } from './rig.ts'
import { kvClaim, redis } from './workloads.ts'

/** Runs a user's commands in the checkout, with kubectl and helm, and a `$HOME`. @throws Error with their output */
export const shell = async (rig: Rig, commands: string): Promise<string> => {
  const path = `${dirname(clusterTool('kubectl'))}:${process.env['PATH']}`
  const outcome = await runCommand({
    command: ['bash', '-euo', 'pipefail', '-c', commands],
    cwd: packageRoot(),
    env: { PATH: path, HOME: rig.folder, KUBECONFIG: rig.kubeconfigFile },
  })
  if (!outcome.ok) throw new Error(`${commands}: ${outcome.stderr || outcome.reason}`)
  return outcome.stdout
}

/** The first fenced block below a heading of docs/kubernetes.md. */
export const pageBlock = async (heading: string): Promise<string> => {
  const page = await readFile(join(packageRoot(), 'docs/kubernetes.md'), 'utf8')
  const section = page.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? ''
  const [, block] = /^```\w+\n(.*?)^```$/ms.exec(section) ?? []
  if (block === undefined) throw new Error(`docs/kubernetes.md has no block below ${heading}`)
  return block
}

/**
 * Runs the commands that docs/kubernetes.md has for a way in, with values for the engines and the Redis of
 * workloads.ts, until all Deployments are available. `kubectl port-forward` needs a kubelet, which the rig has not.
 */
export const installByPage = async (rig: Rig, way: string, values: readonly string[] = []): Promise<void> => {
  const all = [
    'replicas=2',
    'redis.existingSecret=redis-url',
    'kv.connector=llamacpp-slots',
    `kv.existingClaim=${kvClaim}`,
    // A load is worthwhile, however short the prompts of a test are.
    'config.kv.prefillMsPerToken=1000',
    'config.responses.store=true',
    ...values,
  ]
  await rig.apply(`${redis()}---\n${await pageBlock('Engines')}`)
  const commands = (await pageBlock(way)).replace(/^kubectl port-forward .*$/m, '')
  await shell(rig, commands.replace(/^helm install .*$/m, `$& ${all.map((value) => `--set ${value}`).join(' ')}`))
  await rig.kubectl('rollout', 'status', 'deployment', '--timeout=120s')
}
