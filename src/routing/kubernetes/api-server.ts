import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { createInterface } from 'node:readline'
import { readJson } from '../../json/read-json.ts'

/** The Kubernetes API server, as far as lists are followed. */
export interface ApiServer {
  /** Namespace of the service account or of the kubeconfig's context, else `default`. */
  readonly namespace: string
  /** The answer to a GET of `path`, parsed. @throws ApiServerFault, a system error, or the signal's reason */
  get(path: string, signal: AbortSignal): Promise<unknown>
  /**
   * Passes on each line of a watch. Resolves when an open watch ends, whatever ended it: the server, the network,
   * `signal`, or `onEvent`, which may throw. @throws as `get` when it cannot be opened
   */
  watch(
    path: string,
    listener: { readonly onOpen: () => void; readonly onEvent: (event: unknown) => void },
    signal: AbortSignal,
  ): Promise<void>
}

/** The API server answered with another status than 200, such as 403 where a role is missing. */
export class ApiServerFault extends Error {
  override readonly name = 'ApiServerFault'
  readonly status: number

  constructor(status: number, path: string) {
    super(`GET ${path} answered ${status}`)
    this.status = status
  }
}

/** A page of a list has some 100 KiB; if each of its objects were as large as etcd takes, 40 MiB. */
const maxAnswerBytes = 64 * 1024 * 1024
/** etcd takes objects of up to 1.5 MiB. */
const maxEventLength = 2 * 1024 * 1024
/** A peer that is gone without a word is noticed 10 s later. */
const keepAliveMs = 30_000

/**
 * Reached as the pod's service account, or by a kubeconfig; tokens are read again as they are renewed. The optional
 * package @kubernetes/client-node is loaded here.
 * @throws Error that says what to do: the package is missing, or the service account, or a kubeconfig that can be used
 */
export const connectApiServer = async (kubeconfigFile: string | undefined): Promise<ApiServer> => {
  const { KubeConfig } = await import('@kubernetes/client-node').catch((cause: unknown) => {
    throw new Error(
      'Pods from Kubernetes need the optional package @kubernetes/client-node, which cannot be loaded: npm install @kubernetes/client-node',
      { cause },
    )
  })
  const config = new KubeConfig()
  if (kubeconfigFile === undefined) config.loadFromCluster()
  else config.loadFromFile(kubeconfigFile)
  const server = config.getCurrentCluster()?.server
  if (server === undefined || !URL.canParse(server)) {
    throw new Error(
      `There is no Kubernetes API server: ${kubeconfigFile ?? 'this process runs in no pod with a service account; set routing.kubernetes.kubeconfigFile'}`,
    )
  }
  const call = server.startsWith('http:') ? httpRequest : httpsRequest

  const open = async (path: string, signal: AbortSignal): Promise<IncomingMessage> => {
    const options: RequestOptions = { headers: { accept: 'application/json' }, signal }
    await config.applyToHTTPSOptions(options)
    const answer = await answerOf(call(new URL(`${server.replace(/\/$/, '')}${path}`), options)).catch((error) => {
      signal.throwIfAborted()
      throw error
    })
    if (answer.statusCode === 200) return answer
    answer.destroy()
    throw new ApiServerFault(answer.statusCode ?? 0, path)
  }

  return {
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? 'default',
    get: async (path, signal) => {
      const parts: Buffer[] = []
      let bytes = 0
      for await (const part of await open(path, signal)) {
        parts.push(part)
        bytes += part.length
        if (bytes > maxAnswerBytes) throw new Error(`GET ${path} answered more than ${maxAnswerBytes} bytes`)
      }
      return readJson(Buffer.concat(parts).toString(), maxAnswerBytes)
    },
    watch: async (path, { onOpen, onEvent }, signal) => {
      const answer = await open(path, signal)
      answer.socket.setKeepAlive(true, keepAliveMs)
      onOpen()
      try {
        for await (const line of createInterface(answer)) onEvent(readJson(line, maxEventLength))
      } catch {
        answer.destroy()
      }
    },
  }
}

const answerOf = async (request: ClientRequest): Promise<IncomingMessage> => {
  request.end()
  const [answer] = await once(request, 'response')
  return answer
}
