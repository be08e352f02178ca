import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { InstallError } from '../../../playground/install/install-once.ts'
import { type Environment, runCommand } from '../../../playground/run-command.ts'

/** The custom resource definitions, from the Go modules that define them. */
export const crdsTool = { name: 'crds', version: '4', cpuSeconds: 10, megabytes: 10 }

const sources = [
  { name: 'gateway-api', module: 'sigs.k8s.io/gateway-api@v1.6.1', folder: 'config/crd/experimental' },
  {
    name: 'inference-extension',
    module: 'sigs.k8s.io/gateway-api-inference-extension@v1.6.0',
    folder: 'config/crd/bases',
  },
  {
    name: 'envoy-gateway',
    module: 'github.com/envoyproxy/gateway@v1.9.1',
    folder: 'charts/gateway-crds-helm/templates/generated',
  },
  {
    name: 'istio',
    module: 'istio.io/api@v1.31.0-rc.0.0.20260824154656-b943409680a7',
    folder: 'kubernetes',
  },
  { name: 'cert-manager', module: 'github.com/cert-manager/cert-manager@v1.19.1', folder: 'deploy/crds' },
  {
    name: 'prometheus-operator',
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    folder: 'example/prometheus-operator-crd',
  },
  {
    name: 'grafana-operator',
    module: 'github.com/grafana/grafana-operator/v5@v5.18.0',
    folder: 'config/crd/bases',
  },
] as const

/** A source of custom resource definitions. */
export type CrdSource = (typeof sources)[number]['name']

/** Copies them into a folder for each source. @throws InstallError */
export const installCrds = async (into: string, env: Environment): Promise<void> => {
  for (const { name, module, folder } of sources) {
    const outcome = await runCommand({ command: ['go', 'mod', 'download', '-json', module], env, timeoutMs: 600_000 })
    if (!outcome.ok) throw new InstallError(outcome.reason)
    const { Dir } = z.object({ Dir: z.string() }).parse(JSON.parse(outcome.stdout))
    await mkdir(join(into, name), { recursive: true })
    for (const file of await readdir(join(Dir, folder))) {
      const text = await readFile(join(Dir, folder, file), 'utf8')
      // Envoy Gateway's are templates of a chart, with a condition around each.
      const plain = text.replace(/^\{\{.*\}\}$/gm, '')
      if (plain.includes('kind: CustomResourceDefinition')) await writeFile(join(into, name, file), plain)
    }
  }
}
