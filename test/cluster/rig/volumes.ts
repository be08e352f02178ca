import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CoreV1Api, V1KeyToPath, V1Pod, V1Volume } from '@kubernetes/client-node'

type Files = Readonly<Record<string, string | Buffer>>

/** Writes the volumes of a pod, each into a folder of its name below `folder`. */
export const writeVolumes = async (api: CoreV1Api, pod: V1Pod, folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true })
  for (const volume of pod.spec?.volumes ?? []) {
    const into = join(folder, volume.name)
    if (volume.hostPath !== undefined) {
      await symlink(volume.hostPath.path, into)
      continue
    }
    await mkdir(into, { recursive: true })
    if (volume.emptyDir !== undefined) await chmod(into, 0o777)
    for (const [name, content] of Object.entries(await filesOf(api, pod, volume))) {
      await writeFile(join(into, name), content)
    }
  }
}

const filesOf = async (api: CoreV1Api, pod: V1Pod, volume: V1Volume): Promise<Files> => {
  const namespace = pod.metadata?.namespace ?? 'default'
  const configMap = async (name: string, items?: readonly V1KeyToPath[]): Promise<Files> =>
    pick((await api.readNamespacedConfigMap({ namespace, name })).data ?? {}, items)
  const secret = async (name: string, items?: readonly V1KeyToPath[]): Promise<Files> => {
    const { data = {} } = await api.readNamespacedSecret({ namespace, name })
    return pick(
      Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')])),
      items,
    )
  }
  const token = async (): Promise<string> => {
    const name = pod.spec?.serviceAccountName ?? 'default'
    const body = { spec: { audiences: [], expirationSeconds: 3600 } }
    const { status } = await api.createNamespacedServiceAccountToken({ namespace, name, body })
    return status?.token ?? ''
  }
  if (volume.configMap?.name !== undefined) return configMap(volume.configMap.name, volume.configMap.items)
  if (volume.secret?.secretName !== undefined) return secret(volume.secret.secretName, volume.secret.items)
  const projected = await Promise.all(
    (volume.projected?.sources ?? []).map(async (source): Promise<Files> => {
      if (source.serviceAccountToken !== undefined) return { [source.serviceAccountToken.path]: await token() }
      if (source.configMap?.name !== undefined) return configMap(source.configMap.name, source.configMap.items)
      if (source.secret?.name !== undefined) return secret(source.secret.name, source.secret.items)
      return Object.fromEntries((source.downwardAPI?.items ?? []).map(({ path }) => [path, namespace]))
    }),
  )
  return Object.assign({}, ...projected)
}

const pick = (files: Files, items: readonly V1KeyToPath[] | undefined): Files =>
  items === undefined ? files : Object.fromEntries(items.map(({ key, path }) => [path, files[key] ?? '']))
