// GET /v1/models, GET /v1/models/{name} and POST /tokenize.
import { tokenizePrompt } from '../inference/plan-generation.ts'
import { parseTokenizeBody } from '../openai/tokenize-body.ts'
import { modelEntry } from '../served-models.ts'
import type { Exchange } from './exchange.ts'
import { unknownModel } from './inference-handler.ts'
import { readJsonObject } from './json-body.ts'
import type { Service } from './service.ts'

/** Lists the served names. */
export function handleModelList(exchange: Exchange, { models }: Service): void {
  exchange.sendJson(200, { object: 'list', data: models.names.map((name) => modelEntry(models, name)) })
}

/** Describes one of them. */
export function handleModel(encodedName: string, exchange: Exchange, { models }: Service): void {
  const name = decodeName(encodedName)
  if (models.names.includes(name)) exchange.sendJson(200, modelEntry(models, name))
  else exchange.sendError(unknownModel(name))
}

/** Turns text or messages into tokens, in llama-server's form (`content`) or in vLLM's (`prompt`, `messages`). */
export async function handleTokenize(exchange: Exchange, { engine, models, limits }: Service): Promise<void> {
  const json = await readJsonObject(exchange, limits.maxBodyBytes)
  if (json.kind === 'aborted') return
  if (json.kind === 'invalid') return exchange.sendError(json.error)
  const parsed = parseTokenizeBody(json.value)
  if (parsed.kind === 'invalid') return exchange.sendError(parsed.error)
  const { prompt, model, form } = parsed
  if (model !== undefined && !models.names.includes(model)) return exchange.sendError(unknownModel(model))
  const tokens = tokenizePrompt(prompt, engine.runtime)
  const { contextTokens } = engine.runtime
  exchange.sendJson(
    200,
    form === 'llama-server'
      ? { tokens }
      : { count: tokens.length, max_model_len: contextTokens, tokens, token_strs: null },
  )
}

function decodeName(encodedName: string): string {
  try {
    return decodeURIComponent(encodedName)
  } catch {
    return encodedName
  }
}
