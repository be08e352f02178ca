import { withinLimit } from '../async/deadline.ts'
import { createEngineHttp, type EngineAccess, type EngineReply } from '../engines/engine-http.ts'
import { membersOf } from '../json/members-of.ts'
import { type EngineLoad, parseEngineMetrics } from './engine-metrics.ts'
import type { PodAddress } from './pod.ts'
import { parseServedModels, type ServedModels } from './served-models.ts'

/** The result of one check of a pod. */
export interface ProbeResult {
  /** Undefined: `GET /health` answered 2xx in time, or refused the credential: the engine runs. Else a short reason. */
  readonly problem: string | undefined
  /** Undefined: `GET /metrics` did not answer in time, or says nothing of the load. */
  readonly load: EngineLoad | undefined
  /** Undefined: `GET /v1/models` did not answer in time, or with an error of the engine or of a proxy (5xx). */
  readonly models?: ServedModels | undefined
  /** The call whose credential the engine refused (401, 403), such as `GET /metrics answered 401`. Default: none. */
  readonly refusal?: string | undefined
}

/** Checks the health and the load of pods. */
export interface PodProbe {
  /** Resolves within the deadline, or at once when `signal` fires. Never rejects. */
  probe(address: PodAddress, signal: AbortSignal): Promise<ProbeResult>
  close(): Promise<void>
}

/** `deadlineMs` limits all calls of one check together. */
export const createPodProbe = (options: {
  readonly deadlineMs: number
  readonly access?: EngineAccess | undefined
}): PodProbe => {
  const http = createEngineHttp({ callsPerPod: 3, access: options.access })

  const probe = async (pod: PodAddress, signal: AbortSignal): Promise<ProbeResult> => {
    const get = async (path: string) => ({ path, reply: await http.call({ method: 'GET', pod, path, signal }) })
    // vLLM asks for its key only below `/v1`, llama-server everywhere but there.
    const answers = await Promise.all([get('/health'), get('/metrics'), get('/v1/models')])
    const [health, metrics, models] = answers
    const refusals = answers.flatMap(({ path, reply }) =>
      isRefused(reply) ? [`GET ${path} answered ${reply.status}`] : [],
    )
    return {
      problem: isRefused(health.reply) ? undefined : problemOf(health.reply),
      load: loadOf(metrics.reply),
      models: modelsOf(models.reply),
      refusal: refusals.at(0),
    }
  }

  return {
    probe: (address, signal) => withinLimit(options.deadlineMs, (limit) => probe(address, limit), signal),
    close: () => http.close(),
  }
}

type Answered = Extract<EngineReply, { readonly kind: 'answered' }>

const isRefused = (reply: EngineReply): reply is Answered =>
  reply.kind === 'answered' && (reply.status === 401 || reply.status === 403)

const isSuccess = ({ status }: Answered): boolean => status >= 200 && status < 300

const problemOf = (reply: EngineReply): string | undefined => {
  if (reply.kind !== 'answered') return errorReason(reply.cause)
  return isSuccess(reply) ? undefined : `GET /health answered ${reply.status}`
}

const loadOf = (reply: EngineReply): EngineLoad | undefined =>
  reply.kind === 'answered' && isSuccess(reply) ? parseEngineMetrics(reply.text) : undefined

const modelsOf = (reply: EngineReply): ServedModels | undefined =>
  reply.kind === 'answered' && reply.status < 500 ? parseServedModels(isSuccess(reply) ? reply.text : '') : undefined

/** Why a call failed: the code of a system error (`ECONNREFUSED`), else its message. */
export const errorReason = (error: unknown): string => {
  const { code, message } = membersOf(error)
  if (typeof code === 'string') return code
  return typeof message === 'string' ? message : 'failed'
}
