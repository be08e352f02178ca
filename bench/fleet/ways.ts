import { createHash } from 'node:crypto'
import type { Prompt } from '../prompts.ts'
import { type SentTurn, sendTurn } from './send-turn.ts'

/** How the turns of conversations reach the pods. */
export const wayNames = ['round-robin', 'affinity', 'gateway'] as const
export type WayName = (typeof wayNames)[number]

/** Where a way sends to, and what. */
export interface WayTargets {
  /** `127.0.0.1:8080` */
  readonly pods: readonly string[]
  /** Envoy; only the way through the gateway has one. */
  readonly gatewayUrl: string | undefined
  readonly model: string
  readonly outputTokens: number
}

/** Sends the next turn of a conversation. */
export type SendNext = (conversation: string, prompt: Prompt) => Promise<SentTurn>

const ttlSeconds = 3600
const path = '/v1/completions'

/** The sender of a way; it knows what its clients would know. */
export const createWay = (way: WayName, targets: WayTargets): SendNext => {
  if (way === 'gateway') return throughGateway(targets)
  const { pods, model, outputTokens } = targets
  let sent = 0
  const choose = (conversation: string): number => {
    if (way === 'affinity') return hashedPod(conversation, pods.length)
    sent += 1
    return (sent - 1) % pods.length
  }
  return (conversation, prompt) => {
    const url = `http://${pods[choose(conversation)]}${path}`
    return sendTurn({ url, model, prompt, maxTokens: outputTokens })
  }
}

/** A turn of a conversation without a session asks for one. */
const throughGateway = ({ gatewayUrl, model, outputTokens }: WayTargets): SendNext => {
  const sessions = new Map<string, string>()
  return async (conversation, prompt) => {
    const sessionId = sessions.get(conversation)
    const headers: Record<string, string> =
      sessionId === undefined ? { 'x-session-ttl': String(ttlSeconds) } : { 'x-session-id': sessionId }
    const turn = await sendTurn({ url: `${gatewayUrl}${path}`, model, prompt, maxTokens: outputTokens, headers })
    if (turn.sessionId !== undefined) sessions.set(conversation, turn.sessionId)
    // As docs/presence.md advises.
    if (/reason=session_(not_found|deleted)/.test(turn.cache)) sessions.delete(conversation)
    return turn
  }
}

/** The pod with the highest hash (rendezvous hashing), by its number: ports change from run to run. */
const hashedPod = (conversation: string, pods: number): number => {
  const scores = Array.from({ length: pods }, (_, pod) =>
    createHash('sha256').update(`${conversation} on pod-${pod}`).digest().readUInt32BE(0),
  )
  return scores.indexOf(Math.max(...scores))
}

/** The pod that the hash gives most conversations. */
export const busiestPod = (conversations: readonly string[], pods: number): number => {
  const counts = Array<number>(pods).fill(0)
  for (const conversation of conversations) {
    const pod = hashedPod(conversation, pods)
    counts[pod] = (counts[pod] ?? 0) + 1
  }
  return counts.indexOf(Math.max(...counts))
}
