import { ApiError, eventsUrl, readOverview } from './api.ts'
import type { Overview, Pool, Sample } from './contract.ts'
import { useEffect, useState } from './vendor/preact-hooks.js'

/** What the gateway reports each second. */
export interface LiveData {
  readonly overview: Overview
  /** The last ten minutes, oldest first. */
  readonly samples: readonly Sample[]
  /** Undefined until the first report. */
  readonly pools: readonly Pool[] | undefined
}

/** Whether {@link LiveData} is of now. */
export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'reconnecting' }
  | { readonly kind: 'signed-out' }
  /** The gateway says why the console stays closed. */
  | { readonly kind: 'refused'; readonly message: string }

/** Ten minutes of five seconds. */
const maxSamples = 120
const retryMs = 2_000

const withSample = (samples: readonly Sample[], sample: Sample | undefined): readonly Sample[] =>
  sample === undefined || sample.at <= (samples.at(-1)?.at ?? '') ? samples : [...samples, sample].slice(-maxSamples)

/** Why trying again would not help; undefined: it may. */
const refusalOf = (error: unknown): Connection | undefined => {
  if (!(error instanceof ApiError)) return undefined
  if (error.status === 401) return { kind: 'signed-out' }
  return error.status === 403 ? { kind: 'refused', message: error.message } : undefined
}

/** Reads the history, then follows the events; begins again after a loss. `epoch` changes to begin anew, such as after a login. */
export const useLive = (epoch: number): { readonly connection: Connection; readonly data: LiveData | undefined } => {
  const [connection, setConnection] = useState<Connection>({ kind: 'connecting' })
  const [data, setData] = useState<LiveData>()

  useEffect(() => {
    let source: EventSource | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let stopped = false

    const lost = (): void => {
      source?.close()
      if (stopped) return
      setConnection((before) => (before.kind === 'connecting' ? before : { kind: 'reconnecting' }))
      timer = setTimeout(() => void connect(), retryMs)
    }

    const connect = async (): Promise<void> => {
      try {
        const { samples, ...overview } = await readOverview()
        if (stopped) return
        setData((before) => ({ pools: before?.pools, overview, samples }))
        follow()
      } catch (error) {
        if (stopped) return
        const refusal = refusalOf(error)
        setConnection(refusal ?? { kind: 'reconnecting' })
        if (refusal === undefined) lost()
      }
    }

    const follow = (): void => {
      source = new EventSource(eventsUrl)
      source.addEventListener('overview', ({ data: text }) => {
        const { sample, ...overview } = JSON.parse(text) as Overview & { readonly sample?: Sample }
        setConnection((before) => (before.kind === 'live' ? before : { kind: 'live' }))
        setData((before) => ({
          pools: before?.pools,
          overview,
          samples: withSample(before?.samples ?? [], sample),
        }))
      })
      source.addEventListener('pods', ({ data: text }) => {
        const { pools } = JSON.parse(text) as { readonly pools: readonly Pool[] }
        setData((before) => before && { ...before, pools })
      })
      // Not left to the browser, which would not fetch what was missed, nor tell a refusal from a loss.
      source.addEventListener('error', lost)
    }

    void connect()
    return () => {
      stopped = true
      source?.close()
      clearTimeout(timer)
    }
  }, [epoch])

  return { connection, data }
}
