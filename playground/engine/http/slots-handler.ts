// GET /slots and POST /slots/{id}?action=save|restore|erase, as llama-server has them. Its errors carry the status as
// `code`.
import type { SlotActionOutcome } from '../inference/engine.ts'
import type { Exchange } from './exchange.ts'
import { readJsonObject } from './json-body.ts'
import type { Service } from './service.ts'

/** Lists the slots. With `fail_on_no_slot=1` the answer is 503 while none is idle. */
export function handleSlotList(exchange: Exchange, { engine }: Service): void {
  const slots = engine.slots()
  if (exchange.query.get('fail_on_no_slot') === '1' && slots.every((slot) => slot.isProcessing)) {
    sendSlotError(exchange, { status: 503, type: 'unavailable_error', message: 'no slot available' })
    return
  }
  exchange.sendJson(
    200,
    slots.map((slot) => ({
      id: slot.id,
      id_task: slot.lastTaskId,
      n_ctx: engine.runtime.contextTokens,
      is_processing: slot.isProcessing,
      n_tokens: slot.tokenCount,
      session: slot.sessionHash,
    })),
  )
}

/** Runs an action on a slot; it waits until the slot is free. */
export async function handleSlotAction(slotText: string, exchange: Exchange, service: Service): Promise<void> {
  const { engine } = service
  if (!engine.hasStateFolder) {
    const message = 'This server does not support slots action. Start it with `--kv-dir`'
    return sendSlotError(exchange, { status: 501, type: 'not_supported_error', message })
  }
  const slotId = /^\d{1,4}$/.test(slotText) ? Number(slotText) : -1
  if (!engine.hasSlot(slotId)) return refuse(exchange, 'Invalid slot ID')
  const task = { slotId, signal: exchange.signal }

  const action = exchange.query.get('action')
  switch (action) {
    case 'erase': {
      const outcome = await engine.erase(task)
      return finish(exchange, service, { action, slotId, outcome }, (done) => ({
        id_slot: slotId,
        n_erased: done.tokens,
      }))
    }
    case 'save':
    case 'restore': {
      const filename = await readFilename(exchange, service)
      if (filename === undefined) return
      const outcome = await engine[action]({ ...task, filename })
      return finish(exchange, service, { action, slotId, outcome }, (done) =>
        action === 'save'
          ? {
              id_slot: slotId,
              filename,
              n_saved: done.tokens,
              n_written: done.bytes,
              timings: { save_ms: done.elapsedMs },
            }
          : {
              id_slot: slotId,
              filename,
              n_restored: done.tokens,
              n_read: done.bytes,
              timings: { restore_ms: done.elapsedMs },
            },
      )
    }
    default:
      return refuse(exchange, 'Invalid action')
  }
}

/** Reads `filename` from the body, or answers and returns undefined. */
async function readFilename(exchange: Exchange, { limits }: Service): Promise<string | undefined> {
  const json = await readJsonObject(exchange, limits.maxBodyBytes)
  if (json.kind === 'aborted') return undefined
  if (json.kind === 'invalid') {
    const { status, error } = json.error
    sendSlotError(exchange, { status, type: 'invalid_request_error', message: error.message })
    return undefined
  }
  const { filename } = json.value
  if (typeof filename === 'string') return filename
  refuse(exchange, 'Invalid filename')
  return undefined
}

interface ActionResult {
  readonly action: string
  readonly slotId: number
  readonly outcome: SlotActionOutcome
}

function finish(
  exchange: Exchange,
  { log }: Service,
  { action, slotId, outcome }: ActionResult,
  report: (done: Extract<SlotActionOutcome, { kind: 'done' }>) => unknown,
): void {
  log.info({ action, slotId, ...outcome }, 'slot action')
  switch (outcome.kind) {
    case 'done':
      exchange.sendJson(200, report(outcome))
      break
    case 'refused':
      refuse(exchange, outcome.reason)
      break
    case 'aborted':
      if (exchange.clientIsGone()) break
      sendSlotError(exchange, { status: 503, type: 'unavailable_error', message: 'The engine is shutting down' })
      break
  }
}

function refuse(exchange: Exchange, message: string): void {
  sendSlotError(exchange, { status: 400, type: 'invalid_request_error', message })
}

/** An error in llama-server's form. */
export interface SlotError {
  readonly status: number
  readonly type: 'invalid_request_error' | 'unavailable_error' | 'not_supported_error' | 'server_error'
  readonly message: string
}

function sendSlotError(exchange: Exchange, { status, type, message }: SlotError): void {
  exchange.sendJson(status, { error: { code: status, message, type } })
}
