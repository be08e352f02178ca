import { createServer, type ServerResponse } from 'node:http'
import { closeAtOnce, listenLocally } from './local-server.ts'

/** An object of Kubernetes, as far as lists tell objects apart. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

/** How the server answers from now on. */
export type ApiBehaviour = 'well' | 'hangs' | 'forbids watches' | 'is broken' | 'says nothing of changes'

/** Lists and watches as the API server's own, with faults as a test asks for them. */
export interface FakeApiServer {
  readonly url: string
  put(path: string, object: KubernetesObject): void
  remove(path: string, name: string): void
  behave(behaviour: ApiBehaviour): void
  /** Cuts the connections of all open watches. */
  cutWatches(): void
  /** Tells all open watches that their version is too old, and answers the next one with status 410. */
  expireWatches(): void
  /** Lists and watches that have come so far. */
  lists(): number
  watches(): number
  stop(): Promise<void>
}

interface Change {
  readonly path: string
  readonly type: string
  readonly object: KubernetesObject
  readonly version: number
}

const status = (code: number) => ({ kind: 'Status', status: 'Failure', code })

/** Field selectors of names, and label selectors of equalities. */
const selectorOf = (query: URLSearchParams) => {
  const name = query.get('fieldSelector')?.replace('metadata.name=', '')
  const terms = (query.get('labelSelector') ?? '').split(',').filter((term) => term !== '')
  return ({ metadata }: KubernetesObject): boolean =>
    (name === undefined || metadata.name === name) &&
    terms.every((term) => metadata.labels?.[term.split('=')[0] ?? ''] === term.split('=')[1])
}

export const startFakeApiServer = async (): Promise<FakeApiServer> => {
  const collections = new Map<string, Map<string, KubernetesObject>>()
  const watchers = new Map<ServerResponse, (change: Change) => void>()
  const changes: Change[] = []
  let behaviour: ApiBehaviour = 'well'
  let isExpired = false
  let version = 1
  let lists = 0
  let watches = 0

  const collection = (path: string): Map<string, KubernetesObject> => {
    const found = collections.get(path) ?? new Map<string, KubernetesObject>()
    collections.set(path, found)
    return found
  }
  const tell = (path: string, type: string, object: KubernetesObject): void => {
    version += 1
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    const change = { path, type, object: stored, version }
    changes.push(change)
    if (behaviour !== 'says nothing of changes') for (const tellOne of watchers.values()) tellOne(change)
  }

  const server = createServer((request, response) => {
    const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://api')
    const isWatch = query.has('watch')
    if (isWatch) watches += 1
    else lists += 1
    if (behaviour === 'hangs') return
    const answer = (code: number, body: object): void => void response.writeHead(code).end(JSON.stringify(body))
    if (behaviour === 'is broken') return answer(503, status(503))
    const matches = selectorOf(query)
    if (!isWatch) {
      const items = [...collection(path).values()].filter(matches)
      const start = Number(query.get('continue') ?? 0)
      const end = start + Number(query.get('limit') ?? items.length)
      const more = end < items.length ? { continue: String(end) } : {}
      return answer(200, { metadata: { resourceVersion: String(version), ...more }, items: items.slice(start, end) })
    }
    if (behaviour === 'forbids watches') return answer(403, status(403))
    if (isExpired) {
      isExpired = false
      return answer(410, status(410))
    }
    response.writeHead(200).flushHeaders()
    const tellOne = (change: Change): void => {
      const { type, object } = change
      if (change.path === path && matches(object)) response.write(`${JSON.stringify({ type, object })}\n`)
    }
    for (const change of changes) if (change.version > Number(query.get('resourceVersion'))) tellOne(change)
    watchers.set(response, tellOne)
    const timer = setTimeout(() => response.end(), Number(query.get('timeoutSeconds')) * 1000)
    response.on('close', () => {
      clearTimeout(timer)
      watchers.delete(response)
    })
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    put: (path, object) => {
      const { name } = object.metadata
      const isNew = !collection(path).has(name)
      const stored = { ...object, metadata: { uid: name, ...object.metadata } }
      collection(path).set(name, stored)
      tell(path, isNew ? 'ADDED' : 'MODIFIED', stored)
    },
    remove: (path, name) => {
      const object = collection(path).get(name)
      if (object === undefined) throw new Error(`there is no ${name}`)
      collection(path).delete(name)
      tell(path, 'DELETED', object)
    },
    behave: (to) => {
      behaviour = to
    },
    cutWatches: () => {
      for (const response of watchers.keys()) response.destroy()
    },
    expireWatches: () => {
      isExpired = true
      const line = `${JSON.stringify({ type: 'ERROR', object: status(410) })}\n`
      for (const response of watchers.keys()) response.end(line)
      watchers.clear()
    },
    lists: () => lists,
    watches: () => watches,
    stop: () => closeAtOnce(server),
  }
}
