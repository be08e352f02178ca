import { describe, jest, test } from '@jest/globals'
import { takeTenTurns, waysToContinue } from '../integration/responses/ten-turns.ts'
import { openai } from '../integration/support/client.ts'
import { vllmFleet } from './support/fleet.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

/** From ten chunks on, what is not in a whole one is less than a tenth. Each turn adds one at least, which is stored. */
const sentences = { first: 160, later: 24 }

describe('responses with state on vLLM', () => {
  const stack = useVllmStack({ env: { CTX_RESPONSES_STORE: 'true' } })
  const client = () => openai(stack().url, { headers: { 'routing-strategy': 'round-robin' } })

  test.each(waysToContinue(client))(
    'ten turns with tools by $by, every other one streamed, start from the KV of all that went before, on any pod',
    (way) =>
      takeTenTurns({
        stack: stack(),
        client: client(),
        way,
        model: vllmFleet().servedModelName,
        sentences,
        isStreamed: (turn) => turn % 2 === 1,
        expected: () => ({ object: 'response', store: true }),
      }),
  )
})
