// POST /slots/{id}?action=save|restore|erase, as llama-server has it.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError, type Exchange, readObject, type Service, sendJson } from './exchange.ts'
import type { TokenSequence } from './llama-sequence.ts'

/** Letters, digits, `_`, `-` and single dots inside: no separators, no hidden files, nothing that leaves the folder. */
const plainName = /^(?!.{201})[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/

/** Runs an action on a slot; it waits until the slot is free. Once begun, it is finished. */
export const handleSlotAction = async (slotText: string, exchange: Exchange, service: Service): Promise<void> => {
  const { engine, log, kvDirectory } = service
  const { response, signal, url } = exchange
  if (kvDirectory === undefined) {
    throw new EngineError(501, 'This server does not support slots action. Start it with `--kv-dir`')
  }
  const id = Number(slotText)
  if (engine.slots[id] === undefined) throw new EngineError(400, 'Invalid slot ID')
  const action = url.searchParams.get('action')
  if (action !== 'save' && action !== 'restore' && action !== 'erase') throw new EngineError(400, 'Invalid action')
  const { filename } = action === 'erase' ? { filename: 'none' } : await readObject(exchange)
  if (typeof filename !== 'string' || !plainName.test(filename)) throw new EngineError(400, 'Invalid filename')
  const file = { filename, path: join(kvDirectory, filename) }
  const outcome = await engine.runAction({ id, signal }, (sequence) => act(action, sequence, file))
  log.info({ action, slotId: id, ...outcome }, 'slot action')
  sendJson(response, { id_slot: id, ...outcome })
}

/** Resolves to what the answer reports. */
const act = async (
  action: 'save' | 'restore' | 'erase',
  sequence: TokenSequence,
  { filename, path }: { readonly filename: string; readonly path: string },
): Promise<object> => {
  const startedMs = performance.now()
  const tokens = sequence.tokenCount()
  switch (action) {
    case 'save': {
      const bytes = await sequence.save(path)
      return { filename, n_saved: tokens, n_written: bytes, timings: { save_ms: performance.now() - startedMs } }
    }
    case 'restore': {
      await sequence.load(path).catch((error: unknown) => {
        throw new EngineError(400, `Unable to restore slot: ${error instanceof Error ? error.message : String(error)}`)
      })
      const timings = { restore_ms: performance.now() - startedMs }
      return { filename, n_restored: sequence.tokenCount(), n_read: (await stat(path)).size, timings }
    }
    case 'erase':
      await sequence.clear()
      return { n_erased: tokens }
  }
}
