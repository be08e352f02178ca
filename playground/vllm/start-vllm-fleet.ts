import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toolsDir } from '../paths.ts'
import type { Environment, Report } from '../run-command.ts'
import { httpGet } from '../wait-until-ready.ts'
import { serveFleetControl } from './fleet-control.ts'
import type { FleetDescription } from './fleet-description.ts'
import { type FleetPorts, freeFleetPorts } from './fleet-ports.ts'
import { type FleetServer, type FleetServerOptions, startFleetServer } from './fleet-server.ts'
import { prepareFleet } from './prepare.ts'
import {
  chunkTokens,
  coordinatorCommand,
  coordinatorUrl,
  type FleetPlan,
  instanceId,
  kvEventEndpoints,
  l2Directory,
  lmcacheCommand,
  lmcacheUrl,
  maxModelTokens,
  podAddress,
  podCommand,
  servedModelName,
  serverEnvironment,
} from './server-commands.ts'

/** Real vLLM on this machine's processors, with LMCache. */
export interface StartVllmFleetOptions {
  /** Environment of installation and servers. */
  readonly env: Environment
  /** Receives what goes on: installation, each server that is up. */
  readonly onLine: Report
  /** Default: free ones for two pods. */
  readonly ports?: FleetPorts | undefined
  readonly signal?: AbortSignal | undefined
}

/** A fleet whose servers all answer and know each other. */
export interface RunningVllmFleet {
  readonly description: FleetDescription
  /** Ends every server and removes sockets, shared memory and the work folder. May be called more than once. */
  stop(): Promise<void>
}

/** Environment, model and the files of running fleets. */
export const vllmFolder = (env: Environment): string => join(toolsDir(env), 'vllm')

const sharedMemoryFolder = '/dev/shm'
/** A socket's path ends at 107 characters, of which a fleet's name and what vLLM adds take 66: a long TMPDIR cannot be used. */
const longestSocketsParent = 40
const controlReadyTimeoutMs = 120_000
const podReadyTimeoutMs = 600_000
/** Shorter than one chunk, so that nothing of it is stored. */
const firstPrompt = 'The first prompt. '.repeat(8)

/**
 * Installs what is missing, and starts a coordinator and, per pod, an LMCache server, which registers with it, and vLLM,
 * which registers with that, all on 127.0.0.1. They end with this process, however it ends.
 * @throws InstallError, NotReadyError, or the signal's reason; nothing runs then
 */
export const startVllmFleet = async (options: StartVllmFleetOptions): Promise<RunningVllmFleet> => {
  const { env, signal, onLine: report } = options
  const folder = vllmFolder(env)
  const prepared = await prepareFleet({ folder, env, report, signal })
  const fleetName = `ctx-vllm-${randomBytes(4).toString('hex')}`
  const workFolder = join(folder, fleetName)
  const socketFolder = join(tmpdir().length <= longestSocketsParent ? tmpdir() : '/tmp', fleetName)
  const ports = options.ports ?? (await freeFleetPorts(2))
  const plan: FleetPlan = { ...prepared, folder, workFolder, socketFolder, fleetName, ports }
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
    const pods = [...ports.pods.keys()]
    await startAll([coordinatorPlan(plan)])
    await startAll(pods.map((pod) => lmcachePlan(plan, pod)))
    await startAll(pods.map((pod) => podPlan(plan, pod)))
    endControl = await serveFleetControl(controlSocket, servers)
  } catch (error) {
    await stop()
    throw error
  }
  const description: FleetDescription = {
    pid: process.pid,
    pods: [...ports.pods.keys()].map((pod) => ({
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
    controlSocket,
    logFolder,
  }
  return { description, stop }
}

type ServerPlan = Pick<FleetServerOptions, 'name' | 'url' | 'command' | 'ready' | 'readyTimeoutMs'>

const coordinatorPlan = (plan: FleetPlan): ServerPlan => ({
  name: 'coordinator',
  url: coordinatorUrl(plan),
  command: coordinatorCommand(plan),
  ready: { kind: 'http', url: `${coordinatorUrl(plan)}/healthz` },
  readyTimeoutMs: controlReadyTimeoutMs,
})

const lmcachePlan = (plan: FleetPlan, pod: number): ServerPlan => {
  const url = lmcacheUrl(plan, pod)
  const check = async (): Promise<boolean> => {
    const health = await httpGet(`${url}/healthcheck`)
    const instances = await httpGet(`${coordinatorUrl(plan)}/instances`)
    return health?.status === 200 && instances?.body.includes(`"${instanceId(pod)}"`) === true
  }
  const description = `${url}/healthcheck, and ${instanceId(pod)} at the coordinator`
  return {
    name: `lmcache-${pod}`,
    url,
    command: lmcacheCommand(plan, pod),
    ready: { kind: 'check', description, check },
    readyTimeoutMs: controlReadyTimeoutMs,
  }
}

/**
 * A pod is ready when it has answered a first prompt, not when it says that it is healthy: that prompt takes seconds longer
 * than any other, and shows whether vLLM's kernels run on this processor at all.
 */
const podPlan = (plan: FleetPlan, pod: number): ServerPlan => {
  const url = `http://${podAddress(plan, pod)}`
  const check = async (): Promise<boolean> =>
    (await httpGet(`${url}/health`))?.status === 200 && (await answersPrompt(url))
  return {
    name: `vllm-${pod}`,
    url,
    command: podCommand(plan, pod),
    ready: { kind: 'check', description: `an answer to a first prompt from ${url}`, check },
    readyTimeoutMs: podReadyTimeoutMs,
  }
}

const answersPrompt = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model: servedModelName, prompt: firstPrompt, max_tokens: 2 }),
      signal: AbortSignal.timeout(controlReadyTimeoutMs),
    })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
