import { expect } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import type { PodScript } from '../support/scripted-pod.ts'
import type { Stack } from '../support/stack.ts'
import { type Answer, type ContextView, view } from './support.ts'

/** What an engine says that it counted, and what a session's view then tells of it. */
export const usage = { prompt_tokens: 100, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 64 } }
export const counted = { prompt: 100, output: 3, cached: 64 }
export const nothing = { prompt: 0, output: 0, cached: 0 }

/** Answers in pieces that travel apart: those of a stream, unless headers say what else the answer is. */
export const inPieces =
  (pieces: readonly string[], headers?: Readonly<Record<string, string | number>>): PodScript =>
  async (_request, reply) => {
    if (headers !== undefined) reply.response.writeHead(200, headers)
    for (const piece of pieces) {
      reply.write(piece)
      await eventually(() => expect(reply.response.writableLength).toBe(0))
      await new Promise((resolve) => setImmediate(resolve))
    }
    reply.end()
  }

/** Waits until the turn that created a session is counted; tells the session's tokens then. */
export const tokensOfFirstTurn = (stack: Stack, answer: Answer): Promise<ContextView['tokens']> =>
  eventually(async () => {
    const now = await view(stack, answer.headers.get('x-session-id') ?? '')
    expect(now.turns).toBe(1)
    return now.tokens
  })
