import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Passes requests on as they are, and takes the time of the answers. */
export interface Stopwatch {
  readonly url: string
  /** `http://127.0.0.1:8000`: where requests go from now on. */
  sendTo(url: string): void
  /** Of the largest request since the last call: from its last byte to the first text of its answer. */
  firstTextMs(): number
  stop(): Promise<void>
}

/** The first text of an answer: of responses, messages, chat completions. */
const text = /response\.output_text\.delta|content_block_delta|"content":"[^"]/

export const startStopwatch = async (): Promise<Stopwatch> => {
  let target = ''
  let largest = { bytes: 0, ms: Number.NaN }
  const server = createServer((from, to) => {
    const upstream = request(target + from.url, { method: from.method, headers: from.rawHeaders })
    let [bytes, sentMs, seen] = [0, 0, '']
    from.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    from.on('end', () => {
      sentMs = performance.now()
    })
    upstream.on('response', (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.on('data', (chunk: Buffer) => {
        if (text.test(seen)) return
        seen += chunk.toString('latin1')
        if (text.test(seen) && bytes > largest.bytes) largest = { bytes, ms: performance.now() - sentMs }
      })
      answer.pipe(to)
    })
    upstream.on('error', () => to.destroy())
    from.pipe(upstream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    sendTo: (url) => {
      target = url
    },
    firstTextMs: () => {
      const { ms } = largest
      largest = { bytes: 0, ms: Number.NaN }
      return ms
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
