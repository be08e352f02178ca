import { nanoid } from 'nanoid'
import type { SlicedWork } from '../async/slices.ts'
import { arrayItems } from '../json/array-items.ts'
import { readJson } from '../json/read-json.ts'
import { type JsonLimits, scanJsonObject } from '../json/scan-json-object.ts'
import type { AnswerFrame, NodeItem } from './node-text.ts'

/** Longest id of an item that a client or an engine gave. */
const maxIdLength = 256
/** Items that are read without a pause, some 1 ms. */
const itemsAtOnce = 128
const openArray = 0x5b

/** Ids by type of item, as OpenAI's begin. */
const prefixes: ReadonlyMap<unknown, string> = new Map([
  ['function_call', 'fc'],
  ['function_call_output', 'fco'],
  ['reasoning', 'rs'],
  ['custom_tool_call', 'ctc'],
  ['custom_tool_call_output', 'ctco'],
  ['mcp_call', 'mcp'],
  ['web_search_call', 'ws'],
  ['file_search_call', 'fs'],
])

/** An id for an item of this type: `msg_…` for a message, whose type may be left out. */
const newItemId = (type: unknown): string =>
  `${type === undefined || type === 'message' ? 'msg' : (prefixes.get(type) ?? 'item')}_${nanoid(40)}`

const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= maxIdLength

/** Reads the id and the type of an item without building it. Undefined: the text is no JSON object. */
export function* readItem(json: string, side: NodeItem['side'], limits: JsonLimits): SlicedWork<NodeItem | undefined> {
  const text = Buffer.from(json)
  const scan = yield* scanJsonObject(text, limits, ['id', 'type'])
  if (scan.kind !== 'object') return undefined
  const memberOf = (name: string): unknown => {
    const span = scan.members.get(name)
    return span === undefined ? undefined : readJson(text.toString('utf8', span.start, span.end), maxIdLength)
  }
  const id = memberOf('id')
  return { id: isId(id) ? id : newItemId(memberOf('type') ?? undefined), json, side }
}

export interface ReadAnswer {
  readonly frame: AnswerFrame
  readonly output: readonly NodeItem[]
}

/** Takes a response object apart. Undefined: it is no object with a list of objects as `output`. In slices. */
export function* readAnswer(response: string, limits: JsonLimits): SlicedWork<ReadAnswer | undefined> {
  const text = Buffer.from(response)
  const scan = yield* scanJsonObject(text, limits, ['output'])
  const span = scan.kind === 'object' ? scan.members.get('output') : undefined
  if (span === undefined || span.count !== 1 || span.hasScalars || text[span.start] !== openArray) return undefined
  const output: NodeItem[] = []
  for (const json of yield* arrayItems(text.subarray(span.start, span.end))) {
    const item = yield* readItem(json.toString(), 'output', limits)
    if (item === undefined) return undefined
    output.push(item)
    if (output.length % itemsAtOnce === 0) yield
  }
  return {
    frame: { before: text.toString('utf8', 0, span.start), after: text.toString('utf8', span.end) },
    output,
  }
}
