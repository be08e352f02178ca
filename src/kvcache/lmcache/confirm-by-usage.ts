import { nanoid } from 'nanoid'
import type { OffloadOutcome, OffloadRequest } from '../kv-connector.ts'
import { tokensFromBytes } from '../vault/token-bytes.ts'
import type { BaseArtefact, Claim } from './claim.ts'
import type { Parts } from './parts.ts'
import { pause } from './pause.ts'
import { pin } from './pin.ts'
import { encodeStoredPrefix, parseStoredPrefix } from './stored-prefix.ts'

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
  const tokens = await untilGrown(parts, request, { salt: claim.salt, bytesPerToken, expected })
  const counted = Math.min(wholeChunks(tokens, stored.chunkTokens), expected)
  if (counted <= base.tokens) return { kind: 'unchanged' }

  const artefactId = nanoid()
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

/** How many tokens lie under the salt when those that are expected have come, or no more come. The coordinator learns of them by and by. */
const untilGrown = async (
  parts: Parts,
  request: OffloadRequest,
  salt: { readonly salt: string; readonly bytesPerToken: number; readonly expected: number },
): Promise<number> => {
  let seen = 0
  let grewAtMs = performance.now()
  for (;;) {
    const bytes = (await parts.lmcache.usageGb(salt.salt, 'l2', request.signal)) * bytesPerGib
    const tokens = Math.round(bytes / salt.bytesPerToken)
    if (tokens > seen) grewAtMs = performance.now()
    seen = tokens
    if (seen >= salt.expected || performance.now() - grewAtMs > 2 * parts.limits.settleMs) return seen
    await pause(pollMs, request.signal)
  }
}
