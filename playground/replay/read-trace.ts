import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { errorText, parseTraceLine, TraceError, type TraceRequest } from './trace-request.ts'

/**
 * The requests of a trace file in the Mooncake format, JSON lines, gzipped or not, one after the other: the file is never in memory as a
 * whole. `onRead` receives the share of it that was read, 0 to 1. Empty lines are passed over.
 *
 * @throws TraceError for a line that is not of the format or goes back in time, for a trace without requests, and for a file that cannot be read
 */
export async function* readTrace(
  path: string,
  options: { readonly onRead?: (share: number) => void } = {},
): AsyncGenerator<TraceRequest, void, undefined> {
  const { bytes, gzipped } = await look(path)
  const file = createReadStream(path)
  const text = new PassThrough()
  const copied = gzipped ? pipeline(file, createGunzip(), text) : pipeline(file, text)
  // An error destroys the stream, so that reading the lines fails, too.
  copied.catch(() => undefined)
  let lineNumber = 0
  let latestMs = 0
  let requests = 0
  try {
    for await (const line of createInterface({ input: text, crlfDelay: Number.POSITIVE_INFINITY })) {
      lineNumber += 1
      if (line.trim() === '') continue
      const request = parseTraceLine(line, lineNumber)
      if (request.timestampMs < latestMs) {
        throw new TraceError(
          `line ${lineNumber}: "timestamp" ${request.timestampMs} is before ${latestMs}, that of the line before`,
        )
      }
      latestMs = request.timestampMs
      requests += 1
      yield request
      options.onRead?.(bytes === 0 ? 1 : file.bytesRead / bytes)
    }
    await copied
  } catch (error) {
    throw error instanceof TraceError ? error : unreadable(path, error)
  } finally {
    file.destroy()
    text.destroy()
  }
  if (requests === 0) throw new TraceError(`${path} has no requests`)
}

const gzipMagic = [0x1f, 0x8b] as const

const look = async (path: string): Promise<{ readonly bytes: number; readonly gzipped: boolean }> => {
  try {
    const file = await open(path)
    try {
      const [{ size }, { buffer }] = await Promise.all([file.stat(), file.read(Buffer.alloc(2), 0, 2, 0)])
      return { bytes: size, gzipped: buffer[0] === gzipMagic[0] && buffer[1] === gzipMagic[1] }
    } finally {
      await file.close()
    }
  } catch (error) {
    throw unreadable(path, error)
  }
}

const unreadable = (path: string, error: unknown): TraceError =>
  new TraceError(`${path} cannot be read: ${errorText(error)}`, { cause: error })
