import { describe, expect, jest, test } from '@jest/globals'
import { installPythonSdks } from '../agents/install-python-sdks.ts'
import { itemsOfTurns, takePythonTurns } from '../agents/ten-python-turns.ts'
import { takeTenTurns, waysToContinue } from '../integration/responses/ten-turns.ts'
import { openai } from '../integration/support/openai-client.ts'
import { vllmFleet } from './support/fleet.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(600_000)

/** From ten chunks on, what is not in a whole one is less than a tenth. Each turn adds one at least, which is stored. */
const sentences = { first: 160, later: 24 }

describe('ten turns with tools on vLLM start from the KV of all that went before, on any pod,', () => {
  const stack = useVllmStack({ env: { CTX_RESPONSES_STORE: 'true' } })
  const client = () => openai(stack().url, { headers: { 'routing-strategy': 'round-robin' } })

  test.each(waysToContinue(client))('by $by, every other one streamed', (way) =>
    takeTenTurns({
      stack: stack(),
      client: client(),
      way,
      model: vllmFleet().servedModelName,
      sentences,
      expected: () => ({ object: 'response', store: true }),
    }),
  )

  test.each([
    { by: 'previous_response_id', stream: true },
    { by: 'conversation', stream: false },
  ])('by $by of the SDK for Python, with stream: $stream', async (way) => {
    const sdks = await installPythonSdks()
    const told = await takePythonTurns({ ...way, stack: stack(), sdks, model: vllmFleet().servedModelName, sentences })
    expect(told.map(({ items }) => items)).toEqual(itemsOfTurns)
  })
})
