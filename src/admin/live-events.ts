import type { ServerResponse } from 'node:http'
import { AdminError } from './admin-error.ts'
import type { OperatorsApi } from './operators-api.ts'

const maxStreams = 32
const intervalMs = 1_000
/** What a console that reads slowly may have left unread. */
const maxUnreadBytes = 1_048_576

/** Server-sent events of the console: the overview and the pods, at once and every second, made once for all streams. */
export interface LiveEvents {
  /** Sends events until the client leaves. @throws AdminError `too_many_streams` */
  open(response: ServerResponse): Promise<void>
  close(): void
}

export const createLiveEvents = (parts: {
  readonly api: Pick<OperatorsApi, 'overview' | 'pods'>
  readonly onError: (error: unknown) => void
}): LiveEvents => {
  const streams = new Set<ServerResponse>()
  let timer: NodeJS.Timeout | undefined

  const events = async (): Promise<string> => {
    const { samples, ...overview } = await parts.api.overview()
    // The last one each time: who connects later, or misses an event, has it too.
    const sample: unknown = Array.isArray(samples) ? samples.at(-1) : undefined
    return eventOf('overview', { ...overview, sample }) + eventOf('pods', parts.api.pods())
  }

  const sendAll = async (): Promise<void> => {
    try {
      const text = await events()
      for (const stream of streams) {
        if (stream.writableLength > maxUnreadBytes) stream.destroy()
        else stream.write(text)
      }
    } catch (error) {
      parts.onError(error)
    }
    schedule()
  }

  const schedule = (): void => {
    clearTimeout(timer)
    timer = streams.size === 0 ? undefined : setTimeout(() => void sendAll(), intervalMs)
  }

  return {
    open: async (response) => {
      const text = await events()
      if (streams.size >= maxStreams) throw new AdminError('too_many_streams')
      // It was answered as too late, or its client has left.
      if (response.headersSent || response.destroyed) return
      // Only now, so that no event goes out before the head.
      streams.add(response)
      response.once('close', () => streams.delete(response))
      response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        // A proxy such as nginx would collect the events.
        'x-accel-buffering': 'no',
      })
      response.write(text)
      if (timer === undefined) schedule()
    },
    close: () => {
      clearTimeout(timer)
      for (const stream of streams) stream.destroy()
      streams.clear()
    },
  }
}

const eventOf = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
