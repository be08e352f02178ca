// POST /v1/completions, /v1/chat/completions and /v1/responses.
import { createCompletionFormat, createResponseFormat } from './answer-format.ts'
import { EngineError, type Exchange, readObject, type Service, sendJson } from './exchange.ts'
import { type InferenceApi, parseInferenceBody } from './inference-body.ts'

/** Answers an inference request. */
export const handleInference = async (api: InferenceApi, exchange: Exchange, service: Service): Promise<void> => {
  const { engine, log, modelNames } = service
  const { response, signal } = exchange
  const body = parseInferenceBody(api, await readObject(exchange), engine.llama)
  if (!modelNames.includes(body.model)) throw new EngineError(404, `The model '${body.model}' does not exist.`)
  const format = api === 'responses' ? createResponseFormat(body) : createCompletionFormat(api, body)
  // Answers are short enough to be buffered for a slow reader.
  const sendText = (text: string): void => {
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
      response.write(format.streamStart())
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
