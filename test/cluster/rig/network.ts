import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, runCommand } from '../../../playground/run-command.ts'

/** Where this machine stands in the pods' network, and where the API server, DNS and services answer. */
export const hostAddress = '10.244.0.1'
const bridge = 'ctxbr0'
/** The services' addresses lie on the bridge, where the rig answers for them. */
export const serviceNetwork = '10.96.0.0/16'

/** The network of one pod: a namespace with an address on the bridge. */
export interface PodNetwork {
  readonly address: string
  /** Before the command of a process that is to run in it. */
  readonly prefix: readonly string[]
  remove(): Promise<void>
}

/** A bridge on this machine, to which pods are connected. */
export interface Network {
  /** resolv.conf of the pods. */
  readonly resolverFile: string
  addPod(): Promise<PodNetwork>
  /** The `prefix` of the pod with an address. @throws Error without such a pod */
  prefixOf(address: string): PodNetwork['prefix']
  /** Makes this machine answer at a service's address. */
  addService(address: string): Promise<void>
  remove(): Promise<void>
}

const run = async (...command: Command): Promise<void> => {
  const outcome = await runCommand({ command, env: process.env })
  if (!outcome.ok) throw new Error(outcome.reason)
}
const ip = (text: string): Promise<void> => run('ip', ...text.split(' '))

/** @throws Error without the rights of root, which namespaces and bridges need */
export const createNetwork = async (folder: string): Promise<Network> => {
  if (process.getuid?.() !== 0) throw new Error('make test-cluster makes network namespaces and mounts: run it as root')
  // What an earlier run left when it was killed.
  await ip(`link del ${bridge}`).catch(() => undefined)
  await ip(`link add ${bridge} type bridge`)
  await ip(`addr add ${hostAddress}/16 dev ${bridge}`)
  await ip(`link set ${bridge} up`)
  const resolverFile = join(folder, 'resolv.conf')
  const search = 'default.svc.cluster.local svc.cluster.local cluster.local'
  await writeFile(resolverFile, `nameserver ${hostAddress}\nsearch ${search}\noptions ndots:5\n`)
  let pods = 0
  const prefixes = new Map<string, PodNetwork['prefix']>()

  return {
    resolverFile,
    addPod: async () => {
      pods += 1
      const [name, link] = [`ctx${pods}`, `ctxv${pods}`]
      const address = `10.244.${1 + Math.floor(pods / 250)}.${1 + (pods % 250)}`
      await ip(`netns del ${name}`).catch(() => undefined)
      await ip(`link del ${link}`).catch(() => undefined)
      await ip(`netns add ${name}`)
      await ip(`link add ${link} type veth peer name eth0 netns ${name}`)
      await ip(`link set ${link} master ${bridge} up`)
      await ip(`-n ${name} addr add ${address}/16 dev eth0`)
      await ip(`-n ${name} link set eth0 up`)
      await ip(`-n ${name} link set lo up`)
      await ip(`-n ${name} route add default via ${hostAddress}`)
      // The end of a pod and that of the rig may meet.
      const remove = (): Promise<void> => ip(`netns del ${name}`).catch(() => undefined)
      const prefix = ['ip', 'netns', 'exec', name]
      prefixes.set(address, prefix)
      return { address, prefix, remove }
    },
    prefixOf: (address) => {
      const found = prefixes.get(address)
      if (found === undefined) throw new Error(`no pod has the address ${address}`)
      return found
    },
    addService: (address) => ip(`addr replace ${address}/32 dev ${bridge}`),
    remove: async () => {
      await ip(`link del ${bridge}`)
      await rm(resolverFile)
    },
  }
}
