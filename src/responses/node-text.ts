import type { KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib'
import { open, seal } from '../crypto/seal.ts'
import type { HistoryItem } from './response-history.ts'

/** An item, and whether it was given to the model or came from it. */
export interface NodeItem extends HistoryItem {
  readonly side: 'input' | 'output'
}

export interface NodeItems {
  readonly items: readonly NodeItem[]
  /** That the node's turn asked for; undefined: it names none, or these are items that a client added. */
  readonly model: string | undefined
}

const deflateInThread = promisify(deflateRaw)
const inflateInThread = promisify(inflateRaw)

/** Most texts are shorter: at once they take 10 to 100 µs, by a thread 80 more. */
const shortBytes = 8192
/** A text of so many bytes expands to 2 MiB at most, in some 1 ms. */
const shortDeflatedBytes = 2048

const compress = async (text: Buffer): Promise<Buffer> =>
  text.length <= shortBytes ? deflateRawSync(text) : deflateInThread(text)

const expand = async (deflated: Buffer): Promise<Buffer> =>
  deflated.length <= shortDeflatedBytes ? inflateRawSync(deflated) : inflateInThread(deflated)

/** Base64, since what Redis answers is read as text. `name` is the node's: a text moved to another one does not open. */
const sealText = async (key: KeyObject, name: string, text: Buffer): Promise<string> =>
  seal(key, await compress(text), name).toString('base64')

const openText = async (key: KeyObject, name: string, sealed: string): Promise<Buffer | undefined> => {
  const text = open(key, Buffer.from(sealed, 'base64'), name)
  return text === undefined ? undefined : expand(text)
}

/** A line of JSON that says what follows, and behind it the items' texts: to read them, none is parsed. */
export const sealItems = (key: KeyObject, name: string, { items, model }: NodeItems): Promise<string> => {
  const texts = items.map(({ json }) => Buffer.from(json))
  const head = { model, items: items.map(({ id, side }, index) => [id, side, texts[index]?.length]) }
  return sealText(key, `items ${name}`, Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...texts]))
}

/** Undefined: sealed with another key, for another node, or damaged. */
export const openItems = async (key: KeyObject, name: string, sealed: string): Promise<NodeItems | undefined> => {
  const text = await openText(key, `items ${name}`, sealed)
  if (text === undefined) return undefined
  let at = text.indexOf('\n')
  const head = JSON.parse(text.toString('utf8', 0, at))
  at += 1
  const items = head.items.map(([id, side, bytes]: [string, NodeItem['side'], number]): NodeItem => {
    const json = text.toString('utf8', at, at + bytes)
    at += bytes
    return { id, side, json }
  })
  return { items, model: head.model }
}

/** An answer in two pieces of JSON text, between which its output items stand. */
export interface AnswerFrame {
  readonly before: string
  readonly after: string
}

export const sealAnswer = (key: KeyObject, name: string, frame: AnswerFrame): Promise<string> =>
  sealText(key, `answer ${name}`, Buffer.from(JSON.stringify(frame)))

export const openAnswer = async (key: KeyObject, name: string, sealed: string): Promise<AnswerFrame | undefined> => {
  const text = await openText(key, `answer ${name}`, sealed)
  return text === undefined ? undefined : JSON.parse(text.toString())
}
