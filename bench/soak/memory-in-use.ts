import { z } from 'zod'
import { untilAborted } from '../../src/async/deadline.ts'

const targetsSchema = z.array(z.object({ webSocketDebuggerUrl: z.string() }))
const answerSchema = z.object({ id: z.number(), result: z.unknown() })
/** https://chromedevtools.github.io/devtools-protocol/v8/Runtime/#method-getHeapUsage */
const usageSchema = z.object({ usedSize: z.number(), backingStorageSize: z.number() })

const timeoutMs = 20_000

/**
 * Bytes that a Node.js process uses after a collection: heap and buffers. Resident memory says less: it swings by what
 * is not collected yet, up to three times the young generation's limit (`--max-semi-space-size`).
 *
 * @param inspectorPort of its `--inspect`
 * @throws Error where it does not answer within 20 s
 */
export const memoryInUse = async (inspectorPort: number): Promise<number> => {
  const signal = AbortSignal.timeout(timeoutMs)
  const targets = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`, { signal })
  const [target] = targetsSchema.parse(await targets.json())
  if (target === undefined) throw new Error('the process has no inspector')
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  const ask = (id: number, method: string): Promise<unknown> =>
    new Promise((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        const answer = answerSchema.parse(JSON.parse(String(data)))
        if (answer.id === id) resolve(answer.result)
      })
      socket.send(JSON.stringify({ id, method }))
    })
  const read = async (): Promise<number> => {
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    await ask(1, 'HeapProfiler.collectGarbage')
    const { usedSize, backingStorageSize } = usageSchema.parse(await ask(2, 'Runtime.getHeapUsage'))
    return usedSize + backingStorageSize
  }
  try {
    return await untilAborted(read(), signal, () => {
      throw new Error('the process does not answer its inspector')
    })
  } finally {
    socket.close()
  }
}
