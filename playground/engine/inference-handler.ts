// POST /v1/completions, /v1/chat/completions, /v1/responses and /v1/messages.
import type { AnswerFormat } from './answer-format.ts'
import { createCompletionFormat } from './completion-format.ts'
import type { OnText } from './engine.ts'
import { EngineError, type Exchange, readObject, type Service, sendJson } from './exchange.ts'
import { type InferenceApi, type InferenceBody, parseInferenceBody, readPromptTokens } from './inference-body.ts'
import { createMessageFormat } from './message-format.ts'
import { createResponseFormat } from './response-format.ts'

/** Answers an inference request. */
export const handleInference = async (api: InferenceApi, exchange: Exchange, service: Service): Promise<void> => {
  const { engine, log, modelNames } = service
  const { response, signal } = exchange
  const body = parseInferenceBody(api, await readObject(exchange), engine.llama)
  if (!modelNames.includes(body.model)) throw new EngineError(404, `The model '${body.model}' does not exist.`)
  const format = formatOf(api, body)
  // Answers are short enough to be buffered for a slow reader.
  const sendText: OnText = (text, prompt) => {
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
      response.write(format.streamStart(prompt))
    }
    if (text !== '') response.write(format.streamText(text))
  }
  const answer = await engine.generate({ ...body.request, signal }, body.stream ? sendText : () => undefined)
  // The slot is free from here on: a client that sees the end of the answer can use it at once.
  const { promptTokens, completionTokens } = answer
  log.info({ promptTokens, completionTokens }, 'answered')
  if (body.stream) response.end(format.streamEnd(answer))
  else sendJson(response, format.whole(answer))
}

const formatOf = (api: InferenceApi, body: InferenceBody): AnswerFormat => {
  switch (api) {
    case 'completions':
    case 'chat':
      return createCompletionFormat(api, body)
    case 'responses':
      return createResponseFormat(body)
    case 'messages':
      return createMessageFormat(body)
  }
}

/** Answers `POST /v1/messages/count_tokens`. */
export const handleTokenCount = async (exchange: Exchange, { engine }: Service): Promise<void> => {
  const tokens = readPromptTokens('messages', await readObject(exchange), engine.llama)
  sendJson(exchange.response, { input_tokens: tokens.length })
}
