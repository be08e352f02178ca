import { blockTokens, type TraceRequest } from './trace.ts'

/**
 * Which conversation each request belongs to. Where a trace does not say, its blocks do. A request continues the conversation
 * of which an earlier prompt, counted in full blocks, is the longest prefix of its own. A prompt of one full block or
 * less names no conversation: many begin with the same system prompt.
 */
export const createConversations = () => {
  const byLastBlock = new Map<number, string>()
  const named = new Set<string>()
  let count = 0

  const find = (request: TraceRequest): string | undefined => {
    for (let index = request.blocks.length - 1; index > 0; index -= 1) {
      const found = byLastBlock.get(request.blocks[index] ?? -1)
      if (found !== undefined) return found
    }
    return undefined
  }

  return {
    get count() {
      return count
    },
    /** The name of the request's conversation: that of an earlier one, or a new one. */
    recognise: (request: TraceRequest): string => {
      if (request.conversation !== undefined) {
        count += named.has(request.conversation) ? 0 : 1
        named.add(request.conversation)
        return request.conversation
      }
      const known = find(request)
      if (known === undefined) count += 1
      const name = known ?? `conversation-${count}`
      const lastFull = Math.floor(request.inputTokens / blockTokens) - 1
      const block = lastFull > 0 ? request.blocks[lastFull] : undefined
      if (block !== undefined) byLastBlock.set(block, name)
      return name
    },
  }
}
