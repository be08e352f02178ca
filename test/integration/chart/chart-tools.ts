import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { installOnce } from '../../../playground/install/install-once.ts'
import { installWheel } from '../../../playground/install/install-wheel.ts'
import { ownEnvironment } from '../../../playground/paths.ts'
import { buildGoTool } from '../../cluster/install/build-go-tool.ts'
import { clusterToolsDir, folderOf } from '../../cluster/install/folders.ts'
import { kubeconformTool } from '../../cluster/install/go-tools.ts'
import { crdsTool, installCrds } from '../../cluster/install/install-crds.ts'
import { installKubectl, kubectlTool } from '../../cluster/install/install-kubectl.ts'

/** Programs and schemas by which manifests are rendered and checked, without a cluster. */
export interface ChartTools {
  readonly helm: string
  readonly kubectl: string
  readonly kubeconform: string
  /** For `-schema-location`: Kubernetes 1.37, strict, and the definitions that the manifests use. */
  readonly schemaLocations: readonly string[]
}

/** The PyPI package with the schemas of Kubernetes' own kinds, one file for each. */
const schemasWheel = {
  requirement: 'kubernetes-validate==1.37.0',
  sha256: ['85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9'],
}

const strictFolder = 'site-packages/kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict'

/** The kinds of Kubernetes that the chart and the manifests beside it have. */
const kinds = [
  'configmap-v1',
  'deployment-apps-v1',
  'horizontalpodautoscaler-autoscaling-v2',
  'networkpolicy-networking-v1',
  'persistentvolumeclaim-v1',
  'poddisruptionbudget-policy-v1',
  'role-rbac-v1',
  'rolebinding-rbac-v1',
  'secret-v1',
  'service-v1',
  'serviceaccount-v1',
]

/** Installs what is missing, once: some 60 MB to download, and a build of a few seconds. @throws InstallError */
export const installChartTools = async (): Promise<ChartTools> => {
  const env = ownEnvironment()
  const once = async (
    tool: { readonly name: string; readonly version: string },
    install: (into: string) => Promise<void>,
  ): Promise<string> => {
    const directory = folderOf(tool)
    await installOnce({ directory, install })
    return directory
  }
  const kubectl = await once(kubectlTool, (into) => installKubectl(into, env))
  const kubeconform = await once(kubeconformTool, (into) => buildGoTool(kubeconformTool, into, env))
  const schemas = await once({ name: 'kubernetes-schemas', version: '1.37-standalone-2' }, async (into) => {
    await installWheel(into, schemasWheel, { env, toolsDir: clusterToolsDir() })
    await writeKindSchemas(join(into, strictFolder), into)
    await rm(join(into, 'site-packages'), { recursive: true })
  })
  const crds = await once(crdsTool, (into) => installCrds(into, env))
  const definitions = await once({ name: 'crd-schemas', version: crdsTool.version }, (into) => writeSchemas(crds, into))
  return {
    helm: join(kubectl, 'helm'),
    kubectl: join(kubectl, 'kubectl'),
    kubeconform: join(kubeconform, 'kubeconform'),
    schemaLocations: [schemas, definitions].map((folder) => join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json')),
  }
}

/** A file for each kind, without references: the file that they all refer to takes seconds to read. */
const writeKindSchemas = async (from: string, into: string): Promise<void> => {
  const read = async (name: string): Promise<object> => JSON.parse(await readFile(join(from, `${name}.json`), 'utf8'))
  const { $defs } = z.object({ $defs: z.record(z.string(), z.unknown()) }).parse(await read('_definitions'))
  const resolved = (schema: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map(resolved)
    if (typeof schema !== 'object' || schema === null) return schema
    if ('$ref' in schema) return resolved($defs[String(schema.$ref).split('/').at(-1) ?? ''])
    return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, resolved(value)]))
  }
  for (const kind of kinds) await writeFile(join(into, `${kind}.json`), JSON.stringify(resolved(await read(kind))))
}

/** Some definitions leave out what every object has. */
const schemaOfObject = z.looseObject({ properties: z.record(z.string(), z.unknown()).default({}) })

const definition = z.object({
  kind: z.literal('CustomResourceDefinition'),
  spec: z.object({
    group: z.string(),
    names: z.object({ kind: z.string() }),
    versions: z.array(z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: schemaOfObject }) })),
  }),
})

/** A schema file for each version of each kind, as kubeconform names it. */
const writeSchemas = async (crds: string, into: string): Promise<void> => {
  await mkdir(into, { recursive: true })
  for (const file of await readdir(crds, { recursive: true })) {
    if (!basename(file).endsWith('.yaml')) continue
    for (const document of parseAllDocuments(await readFile(join(crds, file), 'utf8'))) {
      const { success, data } = definition.safeParse(document.toJS())
      if (!success) continue
      const { group, names, versions } = data.spec
      for (const { name, schema } of versions) {
        const fileName = `${names.kind}-${group.split('.')[0]}-${name}.json`.toLowerCase()
        const { properties } = schema.openAPIV3Schema
        const whole = {
          ...schema.openAPIV3Schema,
          properties: { apiVersion: {}, kind: {}, metadata: {}, ...properties },
        }
        await writeFile(join(into, fileName), JSON.stringify(strictly(whole)))
      }
    }
  }
}

/** Refuses members that the schema does not name, as the API server does with `--validate=strict`. */
const strictly = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(strictly)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([name, value]) => [name, strictly(value)] as const)
  const isClosed = 'properties' in schema && !('x-kubernetes-preserve-unknown-fields' in schema)
  return Object.fromEntries(isClosed ? [['additionalProperties', false], ...entries] : entries)
}
