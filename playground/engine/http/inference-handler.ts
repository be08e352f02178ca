// POST /v1/completions, /v1/chat/completions and /v1/responses.
import { createHash, randomUUID } from 'node:crypto'
import type { GenerationEvent, GenerationRequest } from '../inference/generation.ts'
import { type GenerationPlan, planGeneration } from '../inference/plan-generation.ts'
import type { AnswerEnd, AnswerFormat, AnswerHead } from '../openai/answer-format.ts'
import { createChatFormat } from '../openai/chat-format.ts'
import { createCompletionsFormat } from '../openai/completions-format.ts'
import { type InferenceApi, type InferenceBody, parseInferenceBody } from '../openai/inference-body.ts'
import { invalidRequest, type OpenAiError, serverError } from '../openai/openai-error.ts'
import { createResponsesFormat } from '../openai/responses-format.ts'
import type { Exchange } from './exchange.ts'
import { readJsonObject } from './json-body.ts'
import type { Service } from './service.ts'

/** Answers an inference request. */
export async function handleInference(api: InferenceApi, exchange: Exchange, service: Service): Promise<void> {
  const json = await readJsonObject(exchange, service.limits.maxBodyBytes)
  if (json.kind === 'aborted') return
  if (json.kind === 'invalid') return exchange.sendError(json.error)
  const parsed = parseInferenceBody(api, json.value)
  if (parsed.kind === 'invalid') return exchange.sendError(parsed.error)
  const { body } = parsed
  if (!service.models.names.includes(body.model)) return exchange.sendError(unknownModel(body.model))
  const planned = planGeneration(body, {
    runtime: service.engine.runtime,
    slotCount: service.engine.slots().length,
    defaultMaxTokens: service.limits.defaultMaxTokens,
  })
  if (planned.kind === 'invalid') return exchange.sendError(planned.error)
  await answer(exchange, service, { body, plan: planned.plan })
}

/** The error for a model that is not served here. */
export function unknownModel(name: string): OpenAiError {
  return invalidRequest(`The model '${name}' does not exist.`, { status: 404, param: 'model', code: 'model_not_found' })
}

type FinishedEvent = Extract<GenerationEvent, { kind: 'finished' }>

interface Task {
  readonly body: InferenceBody
  readonly plan: GenerationPlan
}

async function answer(exchange: Exchange, service: Service, task: Task): Promise<void> {
  const { engine, metrics, log } = service
  const { body, plan } = task
  const request: GenerationRequest = { ...plan, sessionHash: sessionHash(exchange), signal: exchange.signal }
  const promptTokens = plan.tokens.length
  let format: AnswerFormat | undefined
  let finished: FinishedEvent | undefined
  let text = ''
  let completionTokens = 0
  let facts: Readonly<Record<string, unknown>> = { path: exchange.path, promptTokens }

  for await (const event of engine.generate(request)) {
    switch (event.kind) {
      case 'started': {
        const { slotId, cachedTokens } = event
        metrics.promptBegun({ prompt: promptTokens, cached: cachedTokens })
        facts = { ...facts, slotId, cachedTokens }
        format = createFormat(newHead(body, { promptTokens, cachedTokens }), task, service)
        break
      }
      case 'token':
        completionTokens += 1
        metrics.tokenGenerated()
        if (completionTokens === 1) facts = { ...facts, firstTokenMs: firstToken(exchange, service) }
        text += event.text
        if (body.stream && format !== undefined) sendText(exchange, format, event.text)
        break
      case 'finished':
        finished = event
        break
    }
  }
  // The slot is free from here on: whoever sees the end of the answer can use it at once.
  facts = { ...facts, completionTokens, totalMs: sinceArrival(exchange) }
  if (format === undefined || finished === undefined) {
    log.info(facts, 'aborted')
    sendStopped(exchange, format)
    return
  }
  log.info(facts, 'answered')
  metrics.finished(finished.reason)
  const end: AnswerEnd = { text: text + finished.text, finishReason: finished.reason, completionTokens }
  if (body.stream) finishStream(exchange, format, { end, rest: finished.text })
  else exchange.sendJson(200, format.whole(end))
}

function sendText(exchange: Exchange, format: AnswerFormat, text: string): void {
  if (!exchange.hasBegunAnswer()) exchange.sendEvents(format.streamStart())
  if (text !== '') exchange.sendEvents(format.streamText(text))
}

function finishStream(
  exchange: Exchange,
  format: AnswerFormat,
  last: { readonly end: AnswerEnd; readonly rest: string },
): void {
  sendText(exchange, format, last.rest)
  exchange.sendEvents(format.streamEnd(last.end))
  exchange.endEvents()
}

/** Tells a client that is still there that the engine is going away. */
function sendStopped(exchange: Exchange, format: AnswerFormat | undefined): void {
  if (exchange.clientIsGone()) return
  const message = 'The engine is shutting down.'
  if (exchange.hasBegunAnswer()) {
    exchange.sendEvents(format?.streamFault(message) ?? [])
    exchange.endEvents()
  } else {
    exchange.sendError(serverError(message, { status: 503, code: 'shutting_down' }))
  }
}

function firstToken(exchange: Exchange, { metrics }: Service): number {
  const elapsedMs = sinceArrival(exchange)
  metrics.firstToken(elapsedMs / 1000)
  return elapsedMs
}

function sinceArrival(exchange: Exchange): number {
  return Math.round((performance.now() - exchange.arrivedMs) * 10) / 10
}

function newHead(body: InferenceBody, counts: Pick<AnswerHead, 'promptTokens' | 'cachedTokens'>): AnswerHead {
  return {
    ...counts,
    key: randomUUID().replaceAll('-', ''),
    model: body.model,
    createdSeconds: Math.floor(Date.now() / 1000),
  }
}

function createFormat(head: AnswerHead, { body, plan }: Task, service: Service): AnswerFormat {
  const usageOption = { includeUsage: body.includeUsage || service.limits.alwaysSendUsage }
  switch (body.api) {
    case 'completions':
      return createCompletionsFormat(head, usageOption)
    case 'chat':
      return createChatFormat(head, usageOption)
    case 'responses':
      return createResponsesFormat(head, {
        instructions: body.instructions,
        maxOutputTokens: plan.maxTokens,
        temperature: plan.sampling.temperature,
        topP: plan.sampling.topP,
      })
  }
}

function sessionHash(exchange: Exchange): string | null {
  const sessionId = exchange.header('x-session-id')
  return sessionId === undefined ? null : createHash('sha256').update(sessionId).digest('hex')
}
