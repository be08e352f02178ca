import { mkdir, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { CoreV1Api, V1Container, V1Pod } from '@kubernetes/client-node'
import { type Children, type ManagedChild, startChild } from '../../../playground/child-process.ts'
import { type Environment, runCommand } from '../../../playground/run-command.ts'
import type { PodNetwork } from './network.ts'

/** What stands for a container image: files of this machine. */
export interface Image {
  readonly entrypoint: readonly string[]
  /** Folders of this machine by their place in the container, read-only. Everything else is this machine's own. */
  readonly mounts?: Readonly<Record<string, string>>
  readonly env?: Environment
}

/** A container that runs as a process. */
export interface RunningContainer {
  readonly spec: V1Container
  readonly child: ManagedChild
  /** Runs its preStop hook, then ends it within `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** What a pod's containers share. */
export interface PodPlace {
  readonly pod: V1Pod
  readonly folder: string
  readonly network: PodNetwork
  readonly resolverFile: string
  /** The API server, as pods reach it. */
  readonly apiServer: URL
  readonly api: CoreV1Api
  readonly children: Children
  readonly onLine: (line: string) => void
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Starts a container: on an overlay of `/`, with its volumes, as its user, in the pod's network. */
export const startContainer = async (place: PodPlace, spec: V1Container, image: Image): Promise<RunningContainer> => {
  const { pod, network } = place
  const env = await environmentOf(place, spec)
  const expand = (text: string): string => text.replace(/\$\(([A-Za-z0-9_]+)\)/g, (_, name: string) => env[name] ?? '')
  const argv = [...(spec.command ?? image.entrypoint), ...(spec.args ?? [])].map(expand)
  const base = join(place.folder, spec.name)
  const root = join(base, 'root')
  await mkdir(root, { recursive: true })
  const own = spec.securityContext
  const user = own?.runAsUser ?? pod.spec?.securityContext?.runAsUser
  const binds: { readonly from: string; readonly to: string; readonly readOnly: boolean }[] = [
    ...Object.entries(image.mounts ?? {}).map(([to, from]) => ({ from, to, readOnly: true })),
    ...(spec.volumeMounts ?? []).map(({ name, subPath, mountPath, readOnly }) => ({
      from: join(place.folder, 'volumes', name, subPath ?? ''),
      to: mountPath,
      readOnly: readOnly ?? false,
    })),
    { from: place.resolverFile, to: '/etc/resolv.conf', readOnly: true },
  ]
  const targets = await Promise.all(
    binds.map(async ({ from, to, readOnly }) => ({ from, at: quote(join(root, await withoutLinks(to))), readOnly })),
  )
  const group = own?.runAsGroup ?? pod.spec?.securityContext?.runAsGroup ?? user
  // A change of user clears the signal that ends a child with its parent.
  const asUser = user === undefined ? '' : `--reuid=${user} --regid=${group} --clear-groups`
  const script = [
    'set -e',
    `mkdir -p ${quote(`${base}/upper`)} ${quote(`${base}/work`)}`,
    `mount -t overlay overlay -o ${quote(`lowerdir=/,upperdir=${base}/upper,workdir=${base}/work`)} ${quote(root)}`,
    ...targets.flatMap(({ from, at }) => [
      `if [ -d ${quote(from)} ]; then mkdir -p ${at}; else mkdir -p "$(dirname ${at})"; rm -f ${at}; touch ${at}; fi`,
    ]),
    ...(own?.readOnlyRootFilesystem === true ? [`mount -o remount,ro ${quote(root)}`] : []),
    `mount --bind /dev ${quote(`${root}/dev`)}`,
    `mount -t tmpfs tmpfs ${quote(`${root}/dev/shm`)}`,
    ...targets.flatMap(({ from, at, readOnly }) => [
      `mount --bind ${quote(from)} ${at}`,
      ...(readOnly ? [`mount -o remount,bind,ro ${at}`] : []),
    ]),
    `mount -t proc proc ${quote(`${root}/proc`)}`,
    `mount --bind /sys ${quote(`${root}/sys`)}`,
    // A network namespace has no cgroups. Envoy reads what a container without a memory limit has.
    `mount -t tmpfs tmpfs ${quote(`${root}/sys/fs/cgroup`)}`,
    `echo max > ${quote(`${root}/sys/fs/cgroup/memory.max`)}`,
    `echo 0 > ${quote(`${root}/sys/fs/cgroup/memory.current`)}`,
    `exec chroot ${quote(root)} setpriv --pdeathsig KILL ${asUser} -- ${argv.map(quote).join(' ')}`,
  ].join('\n')
  const child = await startChild({
    name: `${pod.metadata?.name}/${spec.name}`,
    command: ['ip', ...network.prefix.slice(1), 'unshare', '-m', '--propagation', 'private', 'bash', '-c', script],
    env: { PATH: process.env['PATH'], HOME: '/tmp', ...image.env, ...env },
    children: place.children,
    onLine: place.onLine,
  })
  return {
    spec,
    child,
    stop: (graceMs) => stopContainer({ spec, child, env: { ...image.env, ...env }, network }, graceMs),
  }
}

/** The path without symbolic links, such as /var/run: below another root they would lead to this machine's folders. */
const withoutLinks = async (path: string): Promise<string> =>
  realpath(path).catch(async () => (path === '/' ? path : join(await withoutLinks(dirname(path)), basename(path))))

const stopContainer = async (
  container: Pick<RunningContainer, 'spec' | 'child'> & Pick<PodPlace, 'network'> & { readonly env: Environment },
  graceMs: number,
): Promise<void> => {
  const { spec, child, network } = container
  const until = Date.now() + graceMs
  const { preStop } = spec.lifecycle ?? {}
  const pauseMs = Math.min(graceMs, (preStop?.sleep?.seconds ?? 0) * 1000)
  if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  if (preStop?.exec?.command !== undefined) {
    const enter = ['nsenter', '-t', String(child.pid), '-n', '-m', '-r', '-w', '--'] as const
    await runCommand({
      command: [...enter, ...preStop.exec.command],
      // In a cluster Envoy Gateway's hook writes to the log of process 1, which here is not the pod's.
      env: { PATH: process.env['PATH'], ...container.env, KUBERNETES_SERVICE_HOST: undefined },
      timeoutMs: graceMs,
    })
  }
  if (preStop?.httpGet !== undefined) {
    const url = `http://${network.address}:${preStop.httpGet.port}${preStop.httpGet.path ?? '/'}`
    await fetch(url, { signal: AbortSignal.timeout(graceMs) }).catch(() => undefined)
  }
  await child.stop({ graceMs: Math.max(0, until - Date.now()) })
}

const environmentOf = async ({ pod, network, api, apiServer }: PodPlace, spec: V1Container) => {
  const namespace = pod.metadata?.namespace ?? 'default'
  const fields: Readonly<Record<string, string | undefined>> = {
    'status.podIP': network.address,
    'metadata.name': pod.metadata?.name,
    'metadata.namespace': namespace,
    'spec.nodeName': pod.spec?.nodeName,
  }
  const env: Record<string, string> = {
    KUBERNETES_SERVICE_HOST: apiServer.hostname,
    KUBERNETES_SERVICE_PORT: apiServer.port,
  }
  for (const { name, value, valueFrom } of spec.env ?? []) {
    if (value !== undefined) env[name] = value.replace(/\$\((\w+)\)/g, (_, other: string) => env[other] ?? '')
    else if (valueFrom?.fieldRef !== undefined) env[name] = fields[valueFrom.fieldRef.fieldPath] ?? ''
    else if (valueFrom?.secretKeyRef?.name !== undefined) {
      const { data } = await api.readNamespacedSecret({ namespace, name: valueFrom.secretKeyRef.name })
      env[name] = Buffer.from(data?.[valueFrom.secretKeyRef.key] ?? '', 'base64').toString()
    }
  }
  return env
}
