import { randomBytes } from 'node:crypto'
import { createSlices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { maxNodes, nextPath, nodesOf, readPath, writePath } from './chain-path.ts'
import type { OpenHandle } from './chain-reader.ts'
import { type HandleSecrets, type HistoryKeys, newChainKey } from './history-keys.ts'
import type { HistoryStore, NewNode } from './history-store.ts'
import { type AnswerFrame, type NodeItem, type NodeItems, sealAnswer, sealItems } from './node-text.ts'
import { readAnswer, readItem } from './read-items.ts'
import type { AppendOutcome, FinishedTurn } from './response-history.ts'

/** Limits of what is kept. In UTF-8 bytes of JSON text. */
export interface HistoryLimits extends JsonLimits {
  /** Of an item, and of a response object. */
  readonly maxItemBytes: number
  /** Of a chain's items. */
  readonly maxConversationBytes: number
  /** Of a tenant, as they are stored: compressed and sealed. */
  readonly maxTenantBytes: number
}

/** What is to stand behind a chain, or begin one. */
export interface NewItems extends Pick<FinishedTurn, 'tenant' | 'inputItems' | 'ttlSeconds'> {
  /** Undefined: a chain with this root begins. */
  readonly after: OpenHandle | { readonly root: string }
  readonly answer: { readonly id: string; readonly response: string } | undefined
  /** That the turn asked for; undefined: no turn. */
  readonly model: string | undefined
  /** `after` is a conversation, which this turn holds. */
  readonly turnId: string | undefined
}

export type NodeOutcome =
  /** `items`: as they were stored, with their ids. */
  { readonly kind: 'stored'; readonly items: readonly NodeItem[] } | Exclude<AppendOutcome, { readonly kind: 'stored' }>

export type AppendNode = (given: NewItems) => Promise<NodeOutcome>

/** `taken` again and again: another fork has the name each time, which is random. */
const maxTries = 5

export const newRoot = (): string => randomBytes(24).toString('base64url')

export const newSecrets = (root: string, metadata: HandleSecrets['metadata'] = {}): HandleSecrets => ({
  chainKey: newChainKey(),
  root,
  createdAt: Math.floor(Date.now() / 1000),
  metadata,
})

interface Prepared extends NodeItems {
  readonly kind: 'ready'
  readonly bytes: number
  readonly frame: AnswerFrame | undefined
}

/** Checks, seals and stores the items of a turn, or those that a client adds to a conversation. */
export const createNodeAppender = (parts: {
  readonly store: Pick<HistoryStore, 'append'>
  readonly keys: HistoryKeys
  readonly limits: HistoryLimits
}): AppendNode => {
  const { store, keys, limits } = parts
  const slices = createSlices()
  const limited = (limit: 'item-bytes' | 'conversation-bytes' | 'tenant-bytes') => ({ kind: 'limited', limit }) as const

  const prepare = async ({
    after,
    inputItems,
    answer,
    model,
  }: NewItems): Promise<Prepared | Exclude<NodeOutcome, { kind: 'stored' }>> => {
    const texts = answer === undefined ? inputItems : [...inputItems, answer.response]
    if (texts.some((text) => Buffer.byteLength(text) > limits.maxItemBytes)) return limited('item-bytes')
    const before = 'handle' in after ? after.handle.chainBytes : 0
    const roomBytes = limits.maxConversationBytes - before
    // Of the answer less may count: not all of it is items.
    if (bytesOf(inputItems) > roomBytes) return limited('conversation-bytes')
    const read = answer && (await slices.run(readAnswer(answer.response, limits)))
    if (answer !== undefined && read === undefined) return { kind: 'unreadable' }
    const items: NodeItem[] = []
    for (const json of inputItems) {
      const item = await slices.run(readItem(json, 'input', limits))
      if (item === undefined) return { kind: 'unreadable' }
      items.push(item)
    }
    items.push(...(read?.output ?? []))
    const bytes = bytesOf(items.map(({ json }) => json))
    if (bytes > roomBytes) return limited('conversation-bytes')
    return { kind: 'ready', items, bytes, frame: read?.frame, model }
  }

  const nodeAt = async (
    { tenant, after, answer, ttlSeconds, turnId }: NewItems,
    prepared: Prepared,
    { secrets, fork }: { readonly secrets: HandleSecrets; readonly fork: boolean },
  ): Promise<NewNode> => {
    const before = 'handle' in after ? after.handle : undefined
    const path = nextPath(readPath(before?.path ?? ''), fork ? 'fork' : 'same-branch')
    const names = nodesOf(path)
    const name = names.at(-1) ?? ''
    const { frame } = prepared
    const reached = { path: writePath(path), chainBytes: (before?.chainBytes ?? 0) + prepared.bytes }
    return {
      tenant,
      path: names,
      text: {
        items: await sealItems(secrets.chainKey, name, prepared),
        answer: frame && (await sealAnswer(secrets.chainKey, name, frame)),
      },
      response: answer && {
        ...reached,
        name: keys.nameOf(tenant, answer.id),
        sealed: keys.sealHandle(tenant, answer.id, { ...secrets, metadata: {} }),
      },
      conversation: turnId === undefined || !('handle' in after) ? undefined : { ...reached, name: after.name, turnId },
      ttlSeconds,
      maxTenantBytes: limits.maxTenantBytes,
    }
  }

  return async (given) => {
    const { after } = given
    if ('handle' in after && after.nodes.length >= maxNodes) return limited('conversation-bytes')
    const prepared = await prepare(given)
    if (prepared.kind !== 'ready') return prepared
    const secrets = 'handle' in after ? after.secrets : newSecrets(after.root)
    for (let tries = 0; tries < maxTries; tries += 1) {
      const outcome = await store.append(await nodeAt(given, prepared, { secrets, fork: tries > 0 }))
      if (outcome === 'stored') return { kind: 'stored', items: prepared.items }
      if (outcome === 'full') return limited('tenant-bytes')
      if (outcome !== 'taken') return { kind: outcome }
    }
    return { kind: 'gone' }
  }
}

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
