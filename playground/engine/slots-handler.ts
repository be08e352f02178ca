// GET /slots and POST /slots/{id}?action=save|restore|erase, as llama-server has them. Its errors carry the status as
// `code`.
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { ActionOutcome, Engine, SlotActionName } from './engine.ts'
import { type Exchange, readObject, type Service, sendJson } from './exchange.ts'

/** The answer to `GET /slots`. */
export const slotReports = (engine: Engine) =>
  engine.slots().map(({ id, isProcessing, tokenCount, lastTask }) => ({
    id,
    n_ctx: engine.llama.contextTokens,
    is_processing: isProcessing,
    n_prompt_tokens: tokenCount,
    ...(lastTask === undefined ? {} : { id_task: lastTask.id, params: { n_keep: lastTask.keep } }),
  }))

/** Letters, digits, `_`, `-` and single dots inside: no separators, no hidden files, nothing that leaves the folder. */
const plainName = /^(?!.{201})[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/

/** Runs an action on a slot; it waits until the slot is free. */
export const handleSlotAction = async (slotText: string, exchange: Exchange, service: Service): Promise<void> => {
  const { engine, log, kvDirectory } = service
  const { response, signal } = exchange
  if (kvDirectory === undefined)
    return refuse(response, 501, 'This server does not support slots action. Start it with `--kv-dir`')
  const id = Number(slotText)
  if (engine.slots()[id] === undefined) return refuse(response, 400, 'Invalid slot ID')
  const action = exchange.url.searchParams.get('action')
  if (action !== 'save' && action !== 'restore' && action !== 'erase') return refuse(response, 400, 'Invalid action')
  const body = action === 'erase' ? {} : await readObject(exchange)
  const filename = typeof body['filename'] === 'string' ? body['filename'] : ''
  if (action !== 'erase' && !plainName.test(filename)) return refuse(response, 400, 'Invalid filename')
  const outcome = await engine.runAction(action, { slotId: id, path: join(kvDirectory, filename), signal })
  log.info({ action, slotId: id, ...outcome }, 'slot action')
  switch (outcome.kind) {
    case 'done':
      return sendJson(response, 200, { id_slot: id, ...report(action, filename, outcome) })
    case 'refused':
      return refuse(response, 400, outcome.reason)
    case 'aborted':
      return refuse(response, 503, 'The engine is shutting down')
  }
}

const report = (
  action: SlotActionName,
  filename: string,
  { tokens, bytes, elapsedMs }: Extract<ActionOutcome, { kind: 'done' }>,
): object => {
  switch (action) {
    case 'save':
      return { filename, n_saved: tokens, n_written: bytes, timings: { save_ms: elapsedMs } }
    case 'restore':
      return { filename, n_restored: tokens, n_read: bytes, timings: { restore_ms: elapsedMs } }
    case 'erase':
      return { n_erased: tokens }
  }
}

const errorTypes = { 400: 'invalid_request_error', 501: 'not_supported_error', 503: 'unavailable_error' } as const

const refuse = (response: ServerResponse, status: keyof typeof errorTypes, message: string): void => {
  if (!response.destroyed) sendJson(response, status, { error: { code: status, message, type: errorTypes[status] } })
}
