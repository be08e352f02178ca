import { type AgentName, agentConversationName, agentNames, agentRequests } from './agents.ts'
import type { SendTurn } from './measure-way.ts'
import { sentTurn } from './send-turn.ts'
import { streamAgentAnswer } from './stream-agent-answer.ts'
import type { Workload } from './workload.ts'

/** Some characters of English in a token. */
const tokenLength = 4

/** The agents in turn, by the number at the end of a conversation's name. */
const agentOf = (conversation: string): AgentName =>
  agentNames[Number(/\d+$/.exec(conversation)?.[0] ?? 0) % agentNames.length] ?? 'codex'

/** Sends the turns of agents to one address, whichever way leads on from there. */
export const createAgentTurns = (
  origin: string,
  options: {
    readonly workload: Workload
    readonly model: string
    readonly promptSeed: string
    /** Of the recorded sizes. */
    readonly scale: number
  },
): SendTurn => {
  const { workload, model, promptSeed, scale } = options
  const { moreTokens, outputTokens, seed } = workload
  const lengths = { messageLength: moreTokens * tokenLength, answerLength: outputTokens * tokenLength }
  /** Tokens of each conversation's last prompt: only engines count them. */
  const knownTokens = new Map<string, number>()
  return async (conversation, turn) => {
    const agent = agentOf(conversation)
    const name = agentConversationName(`${seed} ${conversation}`)
    const requests = agentRequests(agent, { model, name, seed: promptSeed, turn, scale, ...lengths })
    return Promise.all(
      requests.map(async (request, index) => {
        const { sessionId: _, ...seen } = await sentTurn(0, () => streamAgentAnswer(origin, request))
        if (index > 0) return { conversation: `${conversation} beside`, turn: 0, newTokens: seen.promptTokens, ...seen }
        const newTokens = seen.promptTokens - (knownTokens.get(conversation) ?? 0)
        if (seen.failure === undefined) knownTokens.set(conversation, seen.promptTokens)
        return { conversation: `${conversation} ${agent}`, turn, newTokens, ...seen }
      }),
    )
  }
}
