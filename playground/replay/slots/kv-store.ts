import { LRUCache } from 'lru-cache'
import { bytesPerToken } from '../fleet-settings.ts'
import { blockTokens, type TraceRequest } from '../trace.ts'

/** KV of a conversation that was saved. */
export interface KeptKv {
  readonly artefactId: string
  /** The turn that left it. */
  readonly request: TraceRequest
  readonly tokens: number
  readonly bytes: number
}

export type KvStore = ReturnType<typeof createKvStore>

/** The persistent store: the KV of each conversation's last saved turn; the one used longest ago goes first. */
export const createKvStore = ({ maxBlocks }: { readonly maxBlocks: number }) => {
  const table = new LRUCache<string, KeptKv>({
    maxSize: Math.min(Math.max(1, maxBlocks), Number.MAX_SAFE_INTEGER),
    sizeCalculation: ({ tokens }) => Math.ceil(tokens / blockTokens),
  })
  return {
    find: (conversation: string): KeptKv | undefined => table.get(conversation),
    save: (conversation: string, kept: KeptKv): void => {
      if (maxBlocks > 0) table.set(conversation, kept)
    },
  }
}

/** The KV that a turn leaves. */
export const keptAfter = (turnId: string, request: TraceRequest): KeptKv => {
  const tokens = request.inputTokens + request.outputTokens
  return { artefactId: turnId, request, tokens, bytes: tokens * bytesPerToken }
}

/**
 * Tokens of a prompt that are those of an earlier prompt. A trace tells it by full blocks: where the later prompt goes
 * on behind the last one of them, it has all of the earlier prompt. Whether it has the answer, too, a trace cannot tell.
 */
export const commonTokens = (earlier: TraceRequest, later: TraceRequest): number => {
  const fullBlocks = Math.floor(earlier.inputTokens / blockTokens)
  const differs = earlier.blocks.findIndex((block, index) => index < fullBlocks && block !== later.blocks[index])
  return differs < 0 ? Math.min(earlier.inputTokens, later.inputTokens) : differs * blockTokens
}
