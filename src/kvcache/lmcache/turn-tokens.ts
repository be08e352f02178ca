import { withinLimit } from '../../async/deadline.ts'
import type { OffloadRequest } from '../kv-connector.ts'
import { openingName } from '../vault/opening-name.ts'
import { tokensFromBytes } from '../vault/token-bytes.ts'
import type { Claim } from './claim.ts'
import type { Parts } from './parts.ts'
import { pause } from './pause.ts'

/**
 * The tokens of the longest prefix whose KV a turn is known to have left in its pod: by the pod's events, else by what was kept of the session's
 * first prompt. Undefined: nobody can tell.
 */
export const tokensOfTurn = async (
  parts: Parts,
  request: OffloadRequest,
  claim: Claim,
): Promise<Uint32Array | undefined> => {
  const told = claim.hasEvents ? await fromEvents(parts, request, claim) : undefined
  const opening = claim.isCreate ? await keptOpening(parts, request, claim) : undefined
  return (opening?.length ?? 0) > (told?.length ?? 0) ? opening : told
}

/** How many leading tokens of a prefix the session's artefact holds already. */
export const tokensSharedWithBase = async (parts: Parts, claim: Claim, tokens: Uint32Array): Promise<number> => {
  if (claim.base === undefined) return 0
  const base = await keptTokens(parts, claim.base.artefactId, claim)
  if (base === undefined) return 0
  let shared = 0
  while (shared < tokens.length && tokens[shared] === base[shared]) shared += 1
  return shared
}

const pollMs = 25

/** The prompt is tokenized beside the turn, which may end first. Where events tell of the turn, they were waited for already. */
const keptOpening = async (parts: Parts, request: OffloadRequest, claim: Claim): Promise<Uint32Array | undefined> => {
  const endMs = performance.now() + (claim.hasEvents ? 0 : parts.limits.settleMs)
  for (;;) {
    const tokens = await keptTokens(parts, openingName(request.turn.turnId), claim)
    if (tokens !== undefined || performance.now() >= endMs) return tokens
    await pause(pollMs, request.signal)
  }
}

const keptTokens = async (parts: Parts, name: string, claim: Claim): Promise<Uint32Array | undefined> => {
  const content = await parts.vault.get(name, claim.contentKey)
  return content === undefined ? undefined : tokensFromBytes(content)
}

/** The last token of an answer was never computed, so all blocks before it are to be expected. */
const fromEvents = (parts: Parts, request: OffloadRequest, claim: Claim): Promise<Uint32Array | undefined> => {
  const { turn, totalTokens } = request
  const expected = totalTokens === undefined ? 1 : Math.floor((totalTokens - 1) / claim.blockTokens) * claim.blockTokens
  return withinLimit(
    parts.limits.settleMs,
    (signal) => parts.events.turnTokens(turn.pod, { turnId: turn.turnId, minTokens: expected }, signal),
    request.signal,
  )
}
