// POST /v1/completions, /v1/chat/completions and /v1/responses.
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  type AnswerEnd,
  type AnswerFormat,
  type AnswerHead,
  createAnswerFormat,
  type ServerEvent,
} from './answer-format.ts'
import type { GenerationEvent } from './engine.ts'
import { type Exchange, invalidRequest, readObject, type Service, sendJson, serverError } from './exchange.ts'
import { type InferenceApi, type InferenceBody, parseInferenceBody } from './inference-body.ts'
import { createResponsesFormat } from './responses-format.ts'

/** Answers an inference request. */
export const handleInference = async (api: InferenceApi, exchange: Exchange, service: Service): Promise<void> => {
  const { engine, log, modelNames, defaultMaxTokens } = service
  const { response } = exchange
  const body = parseInferenceBody(api, await readObject(exchange), { llama: engine.llama, defaultMaxTokens })
  if (!modelNames.includes(body.model)) {
    const message = `The model '${body.model}' does not exist.`
    throw invalidRequest(message, { status: 404, param: 'model', code: 'model_not_found' })
  }
  const promptTokens = body.request.tokens.length
  let format: AnswerFormat | undefined
  let finished: Extract<GenerationEvent, { kind: 'finished' }> | undefined
  let text = ''
  let completionTokens = 0
  for await (const event of engine.generate({ ...body.request, signal: exchange.signal })) {
    switch (event.kind) {
      case 'started':
        format = createFormat(api, { body, promptTokens, cachedTokens: event.cachedTokens }, service)
        break
      case 'token':
        completionTokens += 1
        text += event.text
        if (body.stream && format !== undefined) sendText(response, format, event.text)
        break
      case 'finished':
        finished = event
        break
    }
  }
  // The slot is free from here on: a client that sees the end of the answer can use it at once.
  if (format === undefined || finished === undefined) {
    log.info({ promptTokens, completionTokens }, 'aborted')
    return sendStopped(response, format)
  }
  log.info({ promptTokens, completionTokens }, 'answered')
  const end: AnswerEnd = { text: text + finished.text, finishReason: finished.reason, completionTokens }
  if (!body.stream) return sendJson(response, 200, format.whole(end))
  sendText(response, format, finished.text)
  sendEvents(response, format.streamEnd(end))
  response.end()
}

const createFormat = (
  api: InferenceApi,
  answer: { readonly body: InferenceBody; readonly promptTokens: number; readonly cachedTokens: number },
  service: Service,
): AnswerFormat => {
  const { model, includeUsage, instructions, request } = answer.body
  const head: AnswerHead = {
    promptTokens: answer.promptTokens,
    cachedTokens: answer.cachedTokens,
    key: randomUUID().replaceAll('-', ''),
    model,
    createdSeconds: Math.floor(Date.now() / 1000),
  }
  if (api !== 'responses') {
    return createAnswerFormat(api, head, { includeUsage: includeUsage || service.alwaysSendUsage })
  }
  const { maxTokens, sampling } = request
  return createResponsesFormat(head, {
    instructions,
    maxOutputTokens: maxTokens,
    temperature: sampling.temperature,
    topP: sampling.topP,
  })
}

/** Answers are short enough to be buffered for a slow reader. */
const sendEvents = (response: ServerResponse, events: readonly ServerEvent[]): void => {
  if (!response.headersSent) {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  }
  const lines = events.map(({ name, data }) => {
    const nameLine = name === undefined ? '' : `event: ${name}\n`
    return `${nameLine}data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`
  })
  if (lines.length > 0) response.write(lines.join(''))
}

const sendText = (response: ServerResponse, format: AnswerFormat, text: string): void => {
  if (!response.headersSent) sendEvents(response, format.streamStart())
  if (text !== '') sendEvents(response, format.streamText(text))
}

/** Tells a client that is still there that the engine stops. */
const sendStopped = (response: ServerResponse, format: AnswerFormat | undefined): void => {
  if (response.destroyed) return
  const message = 'The engine is shutting down.'
  if (response.headersSent) {
    sendEvents(response, format?.streamFault(message) ?? [])
    response.end()
  } else {
    throw serverError(message, { code: 'shutting_down' })
  }
}
