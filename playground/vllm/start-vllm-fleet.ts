import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, freePorts } from '../free-port.ts'
import { toolsDir } from '../paths.ts'
import type { Environment, Report } from '../run-command.ts'
import { type FleetDescription, fleetDescriptionSchema } from './fleet-description.ts'
import { type FleetServer, type ServerPlan, serveFleetControl, startFleetServer } from './fleet-server.ts'
import { prepareFleet } from './prepare.ts'
import {
  chunkTokens,
  coordinatorPlan,
  coordinatorUrl,
  type FleetPlan,
  instanceId,
  l2Directory,
  lmcachePlan,
  type PodPlan,
  podAddress,
  servedModelName,
  serverEnvironment,
  type VllmFlags,
  vllmPlan,
} from './server-plans.ts'

export interface StartVllmFleetOptions {
  /** Environment of installation and servers. */
  readonly env: Environment
  /** Receives what goes on: installation, each server that is up. */
  readonly onLine: Report
  /** Flags of each pod's vLLM, beside those of every fleet. Default: two pods without. */
  readonly pods?: readonly VllmFlags[]
  readonly signal?: AbortSignal | undefined
}

/** A fleet whose servers all answer and know each other. */
export interface RunningVllmFleet {
  readonly description: FleetDescription
  /** Ends every server and removes what they left; one that was only obtained runs on. May be called more than once. */
  stop(): Promise<void>
}

/** Environment, model and the files of running fleets. */
export const vllmFolder = (env: Environment): string => join(toolsDir(env), 'vllm')

const sharedMemoryFolder = '/dev/shm'
/** A socket's path has 107 characters at most; a fleet's name and vLLM take 66: a long TMPDIR cannot be used. */
const longestSocketsParent = 40

/**
 * The fleet that `VLLM_FLEET` describes (a file that `make vllm-up` writes), else one of its own.
 * @throws Error when the file does not describe a fleet, and what `startVllmFleet` throws
 */
export const obtainVllmFleet = async (options: StartVllmFleetOptions): Promise<RunningVllmFleet> => {
  const file = options.env['VLLM_FLEET']
  if (!file) return startVllmFleet(options)
  const description = fleetDescriptionSchema.parse(JSON.parse(await readFile(file, 'utf8')))
  options.onLine(`using the fleet of ${file}: pods ${description.pods.map(({ address }) => address).join(', ')}`)
  return { description, stop: async () => undefined }
}

/**
 * Installs what is missing, and starts a coordinator and, per pod, an LMCache server, which registers with it, and
 * vLLM, which registers with that, all on 127.0.0.1. They end with this process, however it ends.
 * @throws InstallError, NotReadyError, or the signal's reason; nothing runs then
 */
export const startVllmFleet = async (options: StartVllmFleetOptions): Promise<RunningVllmFleet> => {
  const { env, signal, onLine: report } = options
  const folder = vllmFolder(env)
  const prepared = await prepareFleet({ folder, env, report, signal })
  const pods = await Promise.all((options.pods ?? [{}, {}]).map(planPod))
  const plan = await planFleet({ ...prepared, folder, pods })
  const { fleetName, workFolder, socketFolder } = plan
  const logFolder = join(workFolder, 'logs')
  const controlSocket = join(socketFolder, 'control')
  const servers: FleetServer[] = []
  let endControl = async (): Promise<void> => {}
  const stop = async (): Promise<void> => {
    await endControl()
    endControl = async () => {}
    // Pods first: a server that loses its coordinator would only complain.
    for (const kind of ['vllm', 'lmcache', 'coordinator']) {
      await Promise.all(servers.filter((server) => server.name.startsWith(kind)).map((server) => server.stop()))
    }
    const shared = (await readdir(sharedMemoryFolder).catch(() => [])).filter((file) => file.includes(fleetName))
    const left = [...shared.map((file) => join(sharedMemoryFolder, file)), workFolder, socketFolder]
    await Promise.all(left.map((path) => rm(path, { recursive: true, force: true })))
  }
  const startAll = async (wanted: readonly ServerPlan[]): Promise<void> => {
    const common = { env: serverEnvironment(plan, env), cwd: folder, report }
    const starts = wanted.map(async (server) => {
      const logFile = join(logFolder, `${server.name}.log`)
      servers.push(await startFleetServer({ ...server, ...common, logFile }, signal))
    })
    await Promise.allSettled(starts)
    await Promise.all(starts)
  }
  try {
    await mkdir(l2Directory(plan), { recursive: true })
    await mkdir(logFolder, { recursive: true })
    await mkdir(socketFolder, { mode: 0o700 })
    await startAll([coordinatorPlan(plan)])
    await startAll(plan.pods.map((ports, pod) => lmcachePlan(plan, ports, pod)))
    await startAll(plan.pods.map((ports, pod) => vllmPlan(plan, ports, pod)))
    endControl = await serveFleetControl(controlSocket, servers)
  } catch (error) {
    await stop()
    throw error
  }
  const description: FleetDescription = {
    pods: plan.pods.map((ports, pod) => {
      const address = podAddress(ports)
      return { address, url: `http://${address}`, lmcacheInstance: instanceId(pod) }
    }),
    coordinatorUrl: coordinatorUrl(plan),
    l2Directory: l2Directory(plan),
    modelPath: plan.modelPath,
    servedModelName,
    chunkTokens,
    controlSocket,
    logFolder,
  }
  return { description, stop }
}

const planPod = async (flags: VllmFlags): Promise<PodPlan> => {
  const [vllm = 0, lmcache = 0, queue = 0] = await freePorts(3)
  return { flags, vllm, lmcache, queue }
}

const planFleet = async (given: Pick<FleetPlan, 'folder' | 'interpreter' | 'modelPath' | 'pods'>) => {
  const fleetName = `ctx-vllm-${randomBytes(4).toString('hex')}`
  return {
    ...given,
    fleetName,
    workFolder: join(given.folder, fleetName),
    socketFolder: join(tmpdir().length <= longestSocketsParent ? tmpdir() : '/tmp', fleetName),
    coordinatorPort: await freePort(),
  }
}
