import { nanoid } from 'nanoid'
import { artefactIdFor } from '../artefact-id.ts'
import type { OffloadOutcome, OffloadRequest } from '../kv-connector.ts'
import { tokensFromBytes } from '../vault/token-bytes.ts'
import type { BaseArtefact, Claim } from './claim.ts'
import type { Parts } from './parts.ts'
import { pin } from './pin.ts'
import { encodeStoredPrefix, parseStoredPrefix } from './stored-prefix.ts'
import { untilGrown } from './until-grown.ts'

const pollMs = 250
const bytesPerGib = 1024 ** 3

/**
 * What a later turn of a fleet without events left in the store: its chunks have no names, but they lie under the session's own salt, whose size
 * the coordinator knows. The artefact names the first turn's chunks and counts them all.
 */
export const confirmByUsage = async (
  parts: Parts,
  request: OffloadRequest,
  turn: { readonly claim: Claim; readonly base: BaseArtefact },
): Promise<OffloadOutcome> => {
  const { claim, base } = turn
  const stored = base.stored === undefined ? undefined : parseStoredPrefix(base.stored.payload)
  const content = await parts.vault.get(base.artefactId, claim.contentKey)
  if (stored === undefined || base.stored === undefined || content === undefined) {
    return { kind: 'none', reason: 'tokens_unknown' }
  }
  const bytesPerToken = base.stored.bytes / base.tokens
  const isWorthIt = request.promptTokens === undefined || request.promptTokens >= base.tokens + stored.chunkTokens
  if (!isWorthIt || !(bytesPerToken > 0)) return { kind: 'unchanged' }

  const expected = wholeChunks(request.promptTokens ?? base.tokens + stored.chunkTokens, stored.chunkTokens)
  // The coordinator learns of what comes by and by.
  const tokens = await untilGrown(
    async () => {
      const bytes = (await parts.lmcache.usageGb(claim.salt, 'l2', request.signal)) * bytesPerGib
      return Math.round(bytes / bytesPerToken)
    },
    (seen) => seen,
    { expected, quietMs: 2 * parts.limits.settleMs, pollMs },
    request.signal,
  )
  const counted = Math.min(wholeChunks(tokens, stored.chunkTokens), expected)
  if (counted <= base.tokens) return { kind: 'unchanged' }

  const artefactId = artefactIdFor(request.turn.session, nanoid())
  const payload = encodeStoredPrefix({
    ...stored,
    artefactId,
    unpinKey: parts.unpinKeys.seal(claim.contentKey, artefactId),
  })
  await request.announce({ artefactId, payload })
  const held = await parts.ledger.hold({ salt: claim.salt, name: artefactId, chunks: stored.chunks })
  if (held === 'being-deleted') return { kind: 'none', reason: 'being_removed' }
  const tokensNamed = tokensFromBytes(content)
  if (tokensNamed !== undefined) {
    await pin(parts, { modelRoot: stored.modelRoot, salt: stored.salt, tokens: tokensNamed }, request.signal)
  }
  await parts.vault.put({ name: artefactId, contentKey: claim.contentKey, content }, parts.limits.vaultTtlMs)
  return { kind: 'stored', artefactId, payload, tokens: counted, bytes: Math.round(counted * bytesPerToken) }
}

const wholeChunks = (tokens: number, chunkTokens: number): number => Math.floor(tokens / chunkTokens) * chunkTokens
