import { z } from 'zod'
import { pause, withinLimit } from '../../async/deadline.ts'
import type { ListChange } from '../pod-monitor.ts'
import { errorReason } from '../pod-probe.ts'
import { type ApiServer, ApiServerFault } from './api-server.ts'

const meta = z.object({ resourceVersion: z.string(), continue: z.string().optional() })
const item = z.looseObject({ metadata: z.looseObject({ uid: z.string() }) })
const list = z.object({ metadata: meta, items: z.array(item) })
const event = z.object({ type: z.string(), object: z.unknown() })

/** Objects of one answer, each of which is parsed at once. A pod has some 10 KiB, a full slice some 30 KiB. */
const pageObjects = 25
const firstPauseMs = 500
const longestPauseMs = 5_000

/**
 * Lists the objects below `path`, then watches their changes, and lists them again after each watch: when it has run
 * for `resyncMs`, when it breaks, and when its version is too old (410). So a change that was lost, by whatever fault,
 * is seen after `resyncMs`. A list is read without a version, which makes the API server ask etcd: it is never older
 * than the one before. It comes in pages, all of one version. Ends when `signal` fires; never rejects.
 */
export const followList = async (options: {
  readonly server: ApiServer
  /** Such as `/api/v1/namespaces/default/pods`. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly resyncMs: number
  /** Limit of one list. */
  readonly timeoutMs: number
  /** Receives all objects after each change; those before it stay while the list is stale. */
  readonly onObjects: (objects: readonly unknown[]) => void
  readonly onChange: (change: ListChange) => void
  readonly signal: AbortSignal
}): Promise<void> => {
  const { server, path, resyncMs, timeoutMs, signal } = options
  const name = path.slice(path.lastIndexOf('/') + 1)
  const pathWith = (more: Readonly<Record<string, string>>): string =>
    `${path}?${new URLSearchParams({ ...options.query, ...more }).toString()}`
  let failures = 0

  const isCurrent = (): void => {
    if (failures > 0) options.onChange({ kind: 'list-current', name })
    failures = 0
  }
  const hasFailed = (error: unknown): void => {
    if (failures === 0) options.onChange({ kind: 'list-stale', name, reason: errorReason(error) })
    failures += 1
  }
  const passOn = (objects: ReadonlyMap<string, unknown>): void => {
    if (!signal.aborted) options.onObjects([...objects.values()])
  }

  /** The server ends the watch; one that has gone without a word is given up a little later. */
  const watchFrom = (version: string, objects: Map<string, unknown>): Promise<void> => {
    const timeoutSeconds = String(Math.ceil(resyncMs / 1000))
    const onEvent = (line: unknown): void => {
      const { type, object } = event.parse(line)
      if (type === 'ERROR') throw new Error('the version is too old')
      const { uid } = item.parse(object).metadata
      if (type === 'DELETED') objects.delete(uid)
      else objects.set(uid, object)
      passOn(objects)
    }
    const watched = pathWith({ watch: '1', resourceVersion: version, timeoutSeconds })
    const listener = { onOpen: isCurrent, onEvent }
    return withinLimit(resyncMs + timeoutMs, (limit) => server.watch(watched, listener, limit), signal)
  }

  /** Adds all objects, and returns the version of the list. */
  const listInto = async (objects: Map<string, unknown>, limited: AbortSignal): Promise<string> => {
    let page: Readonly<Record<string, string>> = {}
    for (;;) {
      const answer = await server.get(pathWith({ limit: String(pageObjects), ...page }), limited)
      const { data } = list.safeParse(answer)
      if (data === undefined) throw new Error('the answer is no list')
      for (const one of data.items) objects.set(one.metadata.uid, one)
      const { resourceVersion, continue: next } = data.metadata
      if (!next) return resourceVersion
      page = { continue: next }
    }
  }

  const listAndWatch = async (): Promise<void> => {
    const objects = new Map<string, unknown>()
    const version = await withinLimit(timeoutMs, (limited) => listInto(objects, limited), signal)
    passOn(objects)
    await watchFrom(version, objects)
  }

  while (!signal.aborted) {
    await listAndWatch().catch((error: unknown) => {
      const isTooOld = error instanceof ApiServerFault && error.status === 410
      if (!signal.aborted && !isTooOld) hasFailed(error)
    })
    // Also after a watch that ended at once: gateways must not list in a circle.
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** failures)
    await pause(longest * (0.5 + Math.random() / 2), signal)
  }
}
