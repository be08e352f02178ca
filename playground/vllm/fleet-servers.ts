import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { httpGet } from '../launcher/http-get.ts'
import type { Environment, Report } from '../launcher/server-tool.ts'
import { type FleetPlan, instanceId, l2Directory, logFolder } from './fleet-plan.ts'
import { type FleetServer, type FleetServerOptions, startFleetServer } from './fleet-server.ts'
import { podReady } from './pod-ready.ts'
import {
  coordinatorCommand,
  coordinatorUrl,
  lmcacheCommand,
  lmcacheUrl,
  podAddress,
  podCommand,
  serverEnvironment,
} from './server-commands.ts'

/** The servers of a fleet that runs. */
export interface FleetServers {
  readonly coordinator: FleetServer
  /** By pod. */
  readonly lmcache: readonly FleetServer[]
  readonly vllm: readonly FleetServer[]
}

export interface StartFleetServersOptions {
  readonly plan: FleetPlan
  readonly env: Environment
  readonly report: Report
  /** Told of each server as soon as it runs, so that all can be ended when another does not start. */
  readonly onServer: (server: FleetServer) => void
  readonly signal?: AbortSignal | undefined
}

const controlReadyTimeoutMs = 120_000
const podReadyTimeoutMs = 600_000
const registrationTimeoutMs = 2000
const reportEveryMs = 15_000

/**
 * The coordinator, then the LMCache servers, which register with it, then the pods, which register with those.
 * @throws NotReadyError, or the signal's reason
 */
export const startFleetServers = async (options: StartFleetServersOptions): Promise<FleetServers> => {
  const { plan } = options
  await mkdir(l2Directory(plan), { recursive: true })
  await mkdir(logFolder(plan), { recursive: true })
  const pods = plan.ports.pods.map((_, pod) => pod)
  const coordinator = await startOne(coordinatorOptions(options), options)
  const lmcache = await startAll(
    pods.map((pod) => lmcacheOptions(pod, options)),
    options,
  )
  const vllm = await startAll(
    pods.map((pod) => podOptions(pod, options)),
    options,
  )
  return { coordinator, lmcache, vllm }
}

const coordinatorOptions = ({ plan, ...options }: StartFleetServersOptions): FleetServerOptions => ({
  ...shared('coordinator', { plan, ...options }),
  url: coordinatorUrl(plan),
  command: coordinatorCommand(plan),
  ready: { kind: 'http', url: `${coordinatorUrl(plan)}/healthz` },
  readyTimeoutMs: controlReadyTimeoutMs,
})

const lmcacheOptions = (pod: number, { plan, ...options }: StartFleetServersOptions): FleetServerOptions => {
  const url = lmcacheUrl(plan, pod)
  return {
    ...shared(`lmcache-${pod}`, { plan, ...options }),
    url,
    command: lmcacheCommand(plan, pod),
    ready: {
      kind: 'check',
      description: `${url}/healthcheck, and ${instanceId(pod)} at the coordinator`,
      check: async (signal) =>
        (await answers(`${url}/healthcheck`, '', signal)) &&
        (await answers(`${coordinatorUrl(plan)}/instances`, `"${instanceId(pod)}"`, signal)),
    },
    readyTimeoutMs: controlReadyTimeoutMs,
  }
}

const podOptions = (pod: number, { plan, ...options }: StartFleetServersOptions): FleetServerOptions => {
  const url = `http://${podAddress(plan, pod)}`
  return {
    ...shared(`vllm-${pod}`, { plan, ...options }),
    url,
    command: podCommand(plan, pod),
    ready: podReady(url),
    readyTimeoutMs: podReadyTimeoutMs,
  }
}

const shared = (
  name: string,
  { plan, env, report }: Pick<StartFleetServersOptions, 'plan' | 'env' | 'report'>,
): Pick<FleetServerOptions, 'name' | 'env' | 'cwd' | 'logFile' | 'report'> => ({
  name,
  env: serverEnvironment(plan, env),
  cwd: plan.folder,
  logFile: join(logFolder(plan), `${name}.log`),
  report,
})

const answers = async (url: string, part: string, signal: AbortSignal): Promise<boolean> => {
  const answer = await httpGet(url, { timeoutMs: registrationTimeoutMs, signal })
  return answer.ok && answer.status === 200 && answer.body.includes(part)
}

/** One failure ends the wait for the others, which are then useless. */
const startAll = async (
  wanted: readonly FleetServerOptions[],
  options: StartFleetServersOptions,
): Promise<readonly FleetServer[]> => {
  const givenUp = new AbortController()
  const giveUp = (): void => givenUp.abort(options.signal?.reason)
  options.signal?.addEventListener('abort', giveUp, { once: true })
  const starts = wanted.map((server) =>
    startOne(server, { ...options, signal: givenUp.signal }).catch((error: unknown) => {
      givenUp.abort(error)
      throw error
    }),
  )
  try {
    await Promise.allSettled(starts)
    if (givenUp.signal.aborted) throw givenUp.signal.reason
    return await Promise.all(starts)
  } finally {
    options.signal?.removeEventListener('abort', giveUp)
  }
}

const startOne = async (
  server: FleetServerOptions,
  { report, onServer, signal }: Pick<StartFleetServersOptions, 'report' | 'onServer' | 'signal'>,
): Promise<FleetServer> => {
  const startedMs = Date.now()
  const timer = setInterval(() => {
    report(`waiting for ${server.name} … ${Math.round((Date.now() - startedMs) / 1000)} s`)
  }, reportEveryMs)
  try {
    const running = await startFleetServer(server, signal)
    onServer(running)
    return running
  } finally {
    clearInterval(timer)
  }
}
