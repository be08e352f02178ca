import type { LogEntry } from '../../accesslog/wire.ts'
import { WireReader } from './wire-reader.ts'

const resourceLogsTag = 1 * 8 + 2
const scopeLogsTag = 2 * 8 + 2
const logRecordTag = 2 * 8 + 2
const bodyTag = 5 * 8 + 2
const textTag = 1 * 8 + 2

/** The entries of an ExportLogsServiceRequest, with the texts of their bodies alone. Throws a CodecError on what is no such message. */
export const decodeLogExport = (bytes: Buffer): readonly LogEntry[] => {
  const reader = new WireReader(bytes)
  const entries: LogEntry[] = []
  while (reader.next(resourceLogsTag)) {
    const outer = reader.enter()
    while (reader.next(scopeLogsTag)) readScope(reader, entries)
    reader.leave(outer)
  }
  return entries
}

const readScope = (reader: WireReader, entries: LogEntry[]): void => {
  const outer = reader.enter()
  while (reader.next(logRecordTag)) entries.push(readRecord(reader))
  reader.leave(outer)
}

const readRecord = (reader: WireReader): LogEntry => {
  let text = ''
  const outer = reader.enter()
  while (reader.next(bodyTag)) text = readText(reader)
  reader.leave(outer)
  return text
}

const readText = (reader: WireReader): string => {
  let text = ''
  const outer = reader.enter()
  while (reader.next(textTag)) text = reader.text()
  reader.leave(outer)
  return text
}
