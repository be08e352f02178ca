import type { Slices } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import { type JsonLimits, scanJsonObject } from '../json/scan-json-object.ts'
import { readUsage } from '../openai/usage.ts'
import { leftOutMember } from '../responses/answer-object.ts'
import type { Chain, ResponseHistory } from '../responses/response-history.ts'
import type { ResponsesTurn } from '../responses/responses-turn.ts'
import { countToLeaveOut } from '../responses/truncate-history.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { Pools } from './pools.ts'
import { bytesPerToken } from './route-turn.ts'

/** An answer that says how long it may be at most is shorter than this, and another has room for so much. */
const leastAnswerTokens = 16

/**
 * How many of the oldest items of a history a turn leaves out, for `truncation: auto`: by the `usage` of the answer
 * before it, and where that is not known (the turn continues a conversation) by some bytes per token. 0 where no engine
 * tells how long its context is. Rejects as the history does.
 */
export const createTruncation =
  (
    parts: {
      readonly history: Pick<ResponseHistory, 'get'>
      readonly pools: Pick<Pools, 'forModel'>
      readonly slices: Slices
    },
    limits: JsonLimits,
  ) =>
  async (tenant: TenantKey, { continued, mayTruncate, model, answerTokens, items }: ResponsesTurn, chain: Chain) => {
    const contextTokens =
      mayTruncate && model !== undefined ? parts.pools.forModel(model).contextTokens?.(model) : undefined
    if (contextTokens === undefined || continued === undefined) return 0
    const before = continued.kind === 'response' ? await parts.history.get({ tenant, id: continued.id }) : undefined
    const told = before && (await parts.slices.run(readCounts(Buffer.from(before.response), limits)))
    return parts.slices.run(
      countToLeaveOut(chain.items, {
        contextTokens,
        usedTokens: told?.usedTokens ?? Math.ceil(chain.bytes / bytesPerToken),
        leftOut: told?.leftOut ?? 0,
        newBytes: items.reduce((sum, { length }) => sum + length, 0),
        answerTokens: answerTokens ?? leastAnswerTokens,
      }),
    )
  }

function* readCounts(response: Buffer, limits: JsonLimits) {
  const scan = yield* scanJsonObject(response, limits, ['usage', leftOutMember])
  const read = (name: string): unknown => {
    const span = scan.kind === 'object' ? scan.members.get(name) : undefined
    return span && readJson(response.toString('utf8', span.start, span.end))
  }
  const usage = readUsage(read('usage'))
  const leftOut = read(leftOutMember)
  return {
    usedTokens: usage && usage.promptTokens + usage.outputTokens,
    leftOut: typeof leftOut === 'number' ? leftOut : 0,
  }
}
