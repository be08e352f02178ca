import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment, Report } from '../launcher/server-tool.ts'
import { serveFleetControl } from './fleet-control.ts'
import type { FleetDescription } from './fleet-description.ts'
import {
  chunkTokens,
  controlSocket,
  type FleetPlan,
  instanceId,
  kvEventEndpoints,
  l2Directory,
  logFolder,
  maxModelTokens,
  servedModelName,
} from './fleet-plan.ts'
import { type FleetPorts, freeFleetPorts } from './fleet-ports.ts'
import type { FleetServer } from './fleet-server.ts'
import { type FleetServers, startFleetServers } from './fleet-servers.ts'
import { fleetName, removeAbandoned, removeLeftovers, sharedMemoryFolder } from './leftovers.ts'
import { prepareMachine } from './prepare-machine.ts'
import { vllmFolder } from './runtime-files.ts'
import { coordinatorUrl, lmcacheUrl, podAddress } from './server-commands.ts'

/** Real vLLM on this machine's processors, with LMCache. */
export interface StartVllmFleetOptions {
  /** Environment of installation and servers; `PYTHON` names an interpreter. */
  readonly env: Environment
  /** Told what goes on: requirements, installation, each server that is up. */
  readonly onLine: Report
  /** Default: 2, or as many as `ports` has. */
  readonly pods?: number | undefined
  /** Default: free ones. */
  readonly ports?: FleetPorts | undefined
  /** Environment, model and caches. Default: `.run/vllm` of the project. */
  readonly folder?: string | undefined
  /** Store and logs. Default: a new folder in `folder`, which `stop` removes. */
  readonly workFolder?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A fleet whose servers all answer and know each other. */
export interface RunningVllmFleet extends FleetServers {
  readonly description: FleetDescription
  /** All servers, in the order in which they were started. */
  readonly servers: readonly FleetServer[]
  /** Ends every server and removes sockets, shared memory and a work folder of its own. May be called more than once. */
  stop(): Promise<void>
}

/**
 * Installs what is missing, and starts a coordinator and, per pod, an LMCache server and vLLM, all on 127.0.0.1. They end
 * with this process, however it ends.
 * @throws NotEnoughError, InstallError, NotReadyError, or the signal's reason; nothing runs then
 */
export const startVllmFleet = async (options: StartVllmFleetOptions): Promise<RunningVllmFleet> => {
  const folder = options.folder ?? vllmFolder()
  const pods = options.ports?.pods.length ?? options.pods ?? 2
  const prepared = await prepareMachine({ ...options, folder, pods, report: options.onLine })
  const name = fleetName({ pid: process.pid, unique: randomBytes(3).toString('hex') })
  const cleanUps: (() => Promise<unknown>)[] = []
  const stop = async (): Promise<void> => {
    for (let cleanUp = cleanUps.pop(); cleanUp !== undefined; cleanUp = cleanUps.pop()) await cleanUp()
  }
  try {
    for (const place of [folder, socketsParent(), sharedMemoryFolder]) await removeAbandoned(place)
    cleanUps.push(() => removeLeftovers(name, sharedMemoryFolder))
    const workFolder = options.workFolder ?? join(folder, name)
    if (options.workFolder === undefined) cleanUps.push(() => rm(workFolder, { recursive: true, force: true }))
    await mkdir(workFolder, { recursive: true })
    const socketFolder = join(socketsParent(), name)
    cleanUps.push(() => rm(socketFolder, { recursive: true, force: true }))
    await mkdir(socketFolder, { mode: 0o700 })
    const plan: FleetPlan = {
      ...prepared,
      folder,
      workFolder,
      socketFolder,
      fleetName: name,
      ports: options.ports ?? (await freeFleetPorts(pods)),
    }
    const servers: FleetServer[] = []
    // Pods first: a server that loses its coordinator would only complain.
    cleanUps.push(() => stopAll(servers))
    const running = await startFleetServers({
      plan,
      env: options.env,
      report: options.onLine,
      onServer: (server) => servers.push(server),
      signal: options.signal,
    })
    const control = await serveFleetControl({ socketPath: controlSocket(plan), servers })
    cleanUps.push(() => control.close())
    return { ...running, servers, description: describeFleet(plan), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A socket's path ends at 107 characters, of which a fleet's name and what vLLM adds take 66: a long TMPDIR cannot be used. */
const longestSocketsParent = 40

const socketsParent = (): string => (tmpdir().length <= longestSocketsParent ? tmpdir() : '/tmp')

const stopAll = async (servers: readonly FleetServer[]): Promise<void> => {
  const groups = ['vllm', 'lmcache', 'coordinator'].map((kind) => servers.filter(({ name }) => name.startsWith(kind)))
  for (const group of groups) await Promise.all(group.map((server) => server.stop()))
}

const describeFleet = (plan: FleetPlan): FleetDescription => ({
  pid: process.pid,
  pods: plan.ports.pods.map((_, pod) => ({
    address: podAddress(plan, pod),
    url: `http://${podAddress(plan, pod)}`,
    lmcacheInstance: instanceId(pod),
    lmcacheUrl: lmcacheUrl(plan, pod),
    kvEvents: kvEventEndpoints(plan, pod),
  })),
  coordinatorUrl: coordinatorUrl(plan),
  l2Directory: l2Directory(plan),
  modelPath: plan.modelPath,
  servedModelName,
  chunkTokens,
  maxModelTokens,
  controlSocket: controlSocket(plan),
  logFolder: logFolder(plan),
})
