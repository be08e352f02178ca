/*
 * A KV connector in one file: KV of llama-server's slots, kept as files in the folder that is the servers'
 * --slot-save-path. A turn locks a slot, which is filled from the session's file; when the turn has ended, the slot is
 * saved to a new file, emptied and unlocked. docs/connectors.md says what a connector has to do. The connector
 * llamacpp-slots does more: it leaves KV in its slot between turns, keeps checksums, renews its claims, and notices a
 * request that took the slot in the middle of a turn.
 *
 *   KV_DIR=/shared/kv CTX_KV_CONNECTOR_MODULE=examples/slot-files-connector.mjs node dist/src/main.js serve
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** An engine that is late with a slot is followed for this long. */
const lateMs = 120_000
const [artefactSuffix, lockSuffix] = ['.slotkv', '.lock']

/** A request with these fields starts from no KV. */
const alone = { id_slot: -1, cache_prompt: false }

const create = ({ directory: folder }, { pods, http, log, maxTurnMs }) => {
  if (folder === undefined) throw new Error('kv.directory names no folder')

  const filesWith = async (suffix) => (await readdir(folder)).filter((name) => name.endsWith(suffix))

  /** @throws when the pod answers with an error, does not answer, or `signal` fires */
  const call = async (pod, path, { body, signal = AbortSignal.timeout(lateMs) } = {}) => {
    const reply = await http.call({ method: body === undefined ? 'GET' : 'POST', pod, path, body, signal })
    if (reply.kind === 'answered' && reply.status === 200) return JSON.parse(reply.text)
    throw new Error(`${pod} answered ${path} with ${reply.status}: ${reply.text}`, { cause: reply.cause })
  }
  const act = ({ pod, slot }, action, body = {}) => call(pod, `/slots/${slot}?action=${action}`, { body })

  const lockOf = ({ pod, slot }) => join(folder, `${encodeURIComponent(pod)}-${slot}${lockSuffix}`)

  /** False: another turn has the slot. A lock appears with its content: on a full disk there is none. */
  const lock = async (claim) => {
    const draft = join(folder, `${randomUUID()}.draft`)
    try {
      await writeFile(draft, JSON.stringify(claim))
      await link(draft, lockOf(claim))
      return true
    } catch (error) {
      if (error.code === 'EEXIST') return false
      throw error
    } finally {
      await rm(draft, { force: true })
    }
  }

  /** What turns hold at the moment. Throws if one of them ends meanwhile: removal and sweep are tried again. */
  const claims = async () => {
    const read = async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))
    return Promise.all((await filesWith(lockSuffix)).map(read))
  }

  const lockIdleSlot = async ({ pod, session }, signal) => {
    for (const { id: slot, is_processing: isBusy } of await call(pod, '/slots', { signal })) {
      const claim = { pod, slot, session, sinceMs: Date.now() }
      if (!isBusy && (await lock(claim))) return claim
    }
    return undefined
  }

  /** Empties the slot, also after an engine is done with what it was asked before, and unlocks it. */
  const release = async (claim) => {
    await act(claim, 'erase').catch((error) => log.warn('a slot was not emptied', { pod: claim.pod, err: error }))
    await rm(lockOf(claim), { force: true })
  }

  /** Fills the slot with what is stored, or empties it. Resolves to the turn's presence. */
  const fill = async (claim, { stored, restarted, refuseLoad }) => {
    await act(claim, 'erase')
    if (stored === undefined || restarted) return { kind: 'miss', reason: 'nothing_stored' }
    const reason = await refuseLoad?.()
    if (reason !== undefined) return { kind: 'miss', reason }
    if (!existsSync(join(folder, stored.payload))) return { kind: 'miss', reason: 'kv_missing', gone: true }
    const startedMs = performance.now()
    const { n_restored: tokens } = await act(claim, 'restore', { filename: stored.payload })
    if (tokens !== stored.tokens) throw new Error(`${tokens} tokens were loaded, and ${stored.tokens} stored`)
    return { kind: 'hit', tier: 'store', tokens, loadMs: performance.now() - startedMs }
  }

  return {
    isolation: () => alone,
    constants: alone,

    async prepare(turn, { signal, refuseLoad }) {
      if (!pods().includes(turn.pod)) throw new Error('the pod is not configured')
      const claim = await lockIdleSlot(turn, signal)
      if (claim === undefined) {
        return { presence: { kind: 'miss', reason: 'no_slot' }, fields: alone, notStored: 'no_slot' }
      }
      const filling = fill(claim, { ...turn, refuseLoad })
      const late = once(signal, 'abort').then(() => Promise.reject(signal.reason))
      try {
        signal.throwIfAborted()
        const presence = await Promise.race([filling, late])
        return { presence, fields: { id_slot: claim.slot, cache_prompt: true }, claim }
      } catch (error) {
        // An engine completes a load after its turn has stopped waiting: until then the slot stays locked.
        const ended = filling.catch(() => {}).then(() => release(claim))
        ended.catch((fault) => log.warn('a slot stays locked until a sweep', { pod: claim.pod, err: fault }))
        throw error
      }
    },

    async finish({ claim, session, turnId, pod, totalTokens, announce }) {
      try {
        if (pod !== claim.pod) return { kind: 'none', reason: 'served_elsewhere' }
        // Unique for every turn. An id that begins with 22 characters of the session's key takes less room in Redis.
        const file = `${session.slice(0, 22)}${turnId}${artefactSuffix}`
        await announce({ artefactId: file, payload: file })
        const { n_saved: tokens, n_written: bytes } = await act(claim, 'save', { filename: file })
        // The last token of a response is not always computed.
        if (totalTokens === undefined || tokens === totalTokens || tokens === totalTokens - 1) {
          return { kind: 'stored', artefactId: file, payload: file, tokens, bytes }
        }
        await rm(join(folder, file), { force: true })
        return { kind: 'none', reason: 'not_verified' }
      } finally {
        await release(claim)
      }
    },

    release: ({ claim }) => release(claim),

    async remove({ kind, session, payload }) {
      if (payload !== undefined) await rm(join(folder, payload), { force: true })
      const isHeld = kind === 'session' && (await claims()).some((claim) => claim.session === session)
      return isHeld ? { kind: 'busy', reason: 'a turn runs' } : { kind: 'removed' }
    },

    async sweep(artefacts) {
      // A claim older than any turn belongs to a gateway that was killed.
      const stale = (await claims()).filter(({ sinceMs }) => Date.now() - sinceMs > maxTurnMs)
      await Promise.all(stale.map(release))
      const files = await filesWith(artefactSuffix)
      const known = await artefacts.known(files)
      const orphans = files.filter((file) => !known.has(file))
      await Promise.all(orphans.map((file) => rm(join(folder, file), { force: true })))
    },
  }
}

export const connector = { name: 'slot-files', create }
