import { nanoid } from 'nanoid'
import type { SessionKey } from '../../sessions/session-record.ts'
import { artefactIdFor } from '../artefact-id.ts'
import type { OffloadOutcome, OffloadRequest } from '../kv-connector.ts'
import { openingName } from '../vault/opening-name.ts'
import { tokensToBytes } from '../vault/token-bytes.ts'
import { untilArrived } from './arrived-chunks.ts'
import { type Claim, parseClaim } from './claim.ts'
import { confirmByUsage } from './confirm-by-usage.ts'
import type { DirectoryEntry } from './lmcache-answers.ts'
import type { Parts } from './parts.ts'
import { pause } from './pause.ts'
import { pin } from './pin.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { encodeStoredPrefix, type StoredPrefix } from './stored-prefix.ts'
import { tokensOfTurn, tokensSharedWithBase } from './turn-tokens.ts'

/** Finds out what of a turn's KV the engine wrote to the store, and holds and pins it. */
export const offload = async (parts: Parts, request: OffloadRequest): Promise<OffloadOutcome> => {
  const claim = parseClaim(request.claim)
  if (claim === undefined) return { kind: 'none', reason: 'not_attached' }
  const { turnId } = request.turn
  let outcome: OffloadOutcome
  try {
    outcome = await confirm(parts, request, claim)
  } catch (cause) {
    outcome = { kind: 'none', reason: 'offload_failed', cause }
  }
  await settle(parts, claim, { turnId, tidy: isTidy(outcome, claim) })
  return outcome
}

/** Whether everything that the engine may have stored has a name, or will go with the session's own salt. */
const isTidy = (outcome: OffloadOutcome, claim: Claim): boolean =>
  goesWithSalt(claim) || outcome.kind === 'stored' || outcome.kind === 'unchanged' || isTooShort(outcome)

/** What a turn without events left goes with the session's own salt, which only an artefact of the session leads to. */
export const goesWithSalt = (claim: Claim): boolean => !claim.hasEvents && claim.base !== undefined

const isTooShort = (outcome: OffloadOutcome): boolean => outcome.kind === 'none' && outcome.reason === 'too_short'

/** The turn is over. What no artefact names is found by the next sweeps. Never rejects: the ledger's lease settles what stays open. */
export const settle = async (
  parts: Parts,
  claim: Claim,
  turn: { readonly turnId: string; readonly tidy: boolean },
): Promise<void> => {
  try {
    await parts.ledger.settle({ salt: claim.salt, ...turn })
    if (claim.isCreate) await parts.vault.delete([openingName(turn.turnId)])
  } catch (error) {
    parts.log.debug('a turn was not settled; its lease will do it', { err: error })
  }
}

const confirm = async (parts: Parts, request: OffloadRequest, claim: Claim): Promise<OffloadOutcome> => {
  const tokens = await tokensOfTurn(parts, request, claim)
  if (!parts.breaker.isClosed()) {
    return { kind: 'none', reason: 'kv_store_unavailable', cause: new StoreUnavailableFault() }
  }
  if (tokens === undefined) {
    if (claim.base === undefined) return { kind: 'none', reason: 'tokens_unknown' }
    return claim.hasEvents ? { kind: 'unchanged' } : confirmByUsage(parts, request, { claim, base: claim.base })
  }
  const named = await parts.breaker.run(() =>
    parts.lmcache.lookup({ modelRoot: claim.modelRoot, salt: claim.salt, tokens }, request.signal),
  )
  if (named.chunks === 0 || tokens.length < parts.limits.minTokens) return { kind: 'none', reason: 'too_short' }
  const stored = describe(
    parts,
    { ...claim, session: request.turn.session, turnId: request.turn.turnId },
    { ...named, chunkTokens: await parts.instances.chunkTokens(request.signal) },
  )
  const known = Math.floor((await tokensSharedWithBase(parts, claim, tokens)) / stored.chunkTokens)
  if (claim.base !== undefined && known >= named.chunks) return { kind: 'unchanged' }
  await request.announce({ artefactId: stored.artefactId, payload: encodeStoredPrefix(stored) })
  await hold(parts, request, stored)
  const arrived = await untilArrived(parts, request, { stored, known })
  if (arrived.chunks === 0) return { kind: 'none', reason: 'not_stored' }

  const heldTokens = tokens.slice(0, arrived.chunks * stored.chunkTokens)
  const held: StoredPrefix = { ...stored, chunks: stored.chunks.slice(0, arrived.chunks) }
  await pin(parts, { modelRoot: held.modelRoot, salt: held.salt, tokens: heldTokens }, request.signal)
  await parts.vault.put(
    { name: held.artefactId, contentKey: claim.contentKey, content: tokensToBytes(heldTokens) },
    parts.limits.vaultTtlMs,
  )
  return {
    kind: 'stored',
    artefactId: held.artefactId,
    payload: encodeStoredPrefix(held),
    tokens: heldTokens.length,
    bytes: arrived.bytes,
  }
}

const describe = (
  parts: Parts,
  claim: Claim & { readonly session: SessionKey; readonly turnId: string },
  named: { readonly chunks: number; readonly entries: readonly DirectoryEntry[]; readonly chunkTokens: number },
): StoredPrefix => {
  const perChunk = named.entries.length / named.chunks
  const pieces = named.entries.slice(0, perChunk).map(({ key }) => [key.kv_rank, key.object_group_id] as const)
  const artefactId = artefactIdFor(claim.session, nanoid())
  return {
    artefactId,
    turnId: claim.turnId,
    modelRoot: claim.modelRoot,
    salt: claim.salt,
    life: claim.life,
    isOwnSalt: claim.isOwnSalt,
    chunks: named.entries.filter((_entry, index) => index % perChunk === 0).map(({ key }) => key.chunk_hash_hex),
    pieces,
    chunkTokens: named.chunkTokens,
    unpinKey: parts.unpinKeys.seal(claim.contentKey, artefactId),
  }
}

/** Holds the chunks, so that nobody deletes them; only then is it looked which of them are there. */
const hold = async (parts: Parts, request: OffloadRequest, stored: StoredPrefix): Promise<void> => {
  const holder = { salt: stored.salt, name: stored.artefactId }
  while ((await parts.ledger.hold({ ...holder, chunks: stored.chunks })) === 'being-deleted') {
    await pause(pollMs, request.signal)
  }
}

const pollMs = 50
