/** Stands in for the engines: reads a request to its end and answers with a fixed text. Arguments: its ports. */

import { createServer } from 'node:http'

const completion = JSON.stringify({
  id: 'c',
  object: 'text_completion',
  model: 'bench',
  choices: [{ index: 0, text: 'yes', finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
})
const models = JSON.stringify({ object: 'list', data: [{ id: 'bench', object: 'model' }] })

for (const port of process.argv.slice(2)) {
  createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      const isModels = request.url === '/v1/models'
      response.setHeader('content-type', 'application/json')
      response.end(request.method === 'POST' ? completion : isModels ? models : '{}')
    })
  }).listen(Number(port), '127.0.0.1')
}
