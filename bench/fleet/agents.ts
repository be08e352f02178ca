import { createHash } from 'node:crypto'
import { commonFragments } from '../../playground/engine/common-fragments.ts'
import { makePrompt } from '../prompts.ts'

/*
 * Requests in the shapes that coding agents of November 2026 send (Codex 0.171, Claude Code 2.1, OpenCode 1.18): paths,
 * headers, members and sizes as recorded, texts invented. A conversation is named as its agent names it.
 */

export const agentNames = ['codex', 'claude-code', 'opencode'] as const
export type AgentName = (typeof agentNames)[number]

/** Headers that hold the agents' names for their conversations. */
export const agentNameHeaders = ['x-claude-code-session-id', 'session-id', 'x-session-affinity'] as const

/** A request of an agent, without its credential. */
export interface AgentRequest {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

/** What a conversation has sent so far. Lengths are in characters. */
export interface AgentHistory {
  readonly model: string
  /** The client's name for the conversation. */
  readonly name: string
  /** Instructions and tools are equal for equal ones of these. */
  readonly seed: string
  /** From 1. */
  readonly turn: number
  /** Of the recorded instructions and tools. */
  readonly scale: number
  readonly messageLength: number
  readonly answerLength: number
}

/** The requests of a turn: that of the conversation, and what the agent sends beside it under the same name. */
export const agentRequests = (agent: AgentName, history: AgentHistory): readonly [AgentRequest, ...AgentRequest[]] => {
  switch (agent) {
    case 'codex':
      return [codex(history)]
    case 'claude-code':
      return [claudeCode(history)]
    case 'opencode':
      return history.turn === 1 ? [openCode(history), openCodeTitle(history)] : [openCode(history)]
  }
}

/** A name as agents make them up: a UUID, equal for equal texts. */
export const agentConversationName = (text: string): string =>
  createHash('sha256')
    .update(text)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')

const words = commonFragments.filter((fragment) => /^[a-z]{3,}$/.test(fragment))

const textOf = (seed: string, length: number): string =>
  makePrompt({ firstId: 0, size: words.length }, seed, Math.ceil(length / 4) + 1)
    .map((id) => words[id])
    .join(' ')
    .slice(0, length)

/** Characters of a request's instructions and of its tools, at scale 1. */
const recorded: Readonly<Record<AgentName, { readonly instructions: number; readonly tools: number }>> = {
  codex: { instructions: 24_000, tools: 15_000 },
  'claude-code': { instructions: 24_000, tools: 60_000 },
  opencode: { instructions: 10_000, tools: 20_000 },
}

const instructionsOf = (agent: AgentName, { seed, scale }: AgentHistory): string =>
  textOf(`${seed} ${agent} instructions`, recorded[agent].instructions * scale)

const toolLength = 1500

/** Each has a property `content`, as the tools that write files do. */
const toolsOf = (agent: AgentName, { seed, scale }: AgentHistory, schemaMember: string) =>
  Array.from({ length: Math.max(1, Math.round((recorded[agent].tools * scale) / toolLength)) }, (_, at) => {
    const property = { type: 'string', description: textOf(`${seed} ${agent} property ${at}`, 80) }
    return {
      name: `tool_${at}`,
      description: textOf(`${seed} ${agent} tool ${at}`, toolLength - 400),
      [schemaMember]: {
        type: 'object',
        properties: { path: property, content: property },
        required: ['path', 'content'],
      },
    }
  })

/** Questions and answers in turn; the last one is the question of this turn. */
const exchangesOf = ({ name, turn, messageLength, answerLength }: AgentHistory) =>
  Array.from({ length: 2 * turn - 1 }, (_, at) => {
    const isAnswer = at % 2 === 1
    const text = textOf(`${name} message ${at}`, isAnswer ? answerLength : messageLength)
    return { role: isAnswer ? ('assistant' as const) : ('user' as const), text }
  })

const codex = (history: AgentHistory): AgentRequest => {
  const { model, name, seed, turn } = history
  const message = (role: string, text: string) => {
    return { type: 'message', role, content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }] }
  }
  const body = {
    model,
    stream: true,
    input: [
      message('developer', instructionsOf('codex', history)),
      message('user', textOf(`${seed} codex guide`, 600)),
      message('user', textOf(`${seed} codex environment`, 300)),
      ...exchangesOf(history).map(({ role, text }) => message(role, text)),
    ],
    tools: toolsOf('codex', history, 'parameters').map((tool) => ({ type: 'function', strict: false, ...tool })),
    tool_choice: 'auto',
    parallel_tool_calls: false,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: name,
    client_metadata: { session_id: name, thread_id: name, turn_id: agentConversationName(`${name} ${turn}`) },
  }
  const headers = { 'session-id': name, 'thread-id': name, 'x-client-request-id': name }
  return { path: '/v1/responses', headers, body: JSON.stringify(body) }
}

const claudeCode = (history: AgentHistory): AgentRequest => {
  const { model, name, seed, turn } = history
  const cached = { cache_control: { type: 'ephemeral' } }
  const exchanges = exchangesOf(history)
  const reminder = [{ type: 'text', text: textOf(`${seed} claude-code reminder`, 400) }]
  const body = {
    model,
    messages: [
      { role: 'user', content: reminder },
      ...exchanges.map(({ role, text }, at) => {
        const isLast = at === exchanges.length - 1
        return { role, content: [{ type: 'text', text, ...(isLast ? cached : {}) }] }
      }),
    ],
    system: [
      // Changes with every request; engines leave it out.
      { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cch=${turn.toString(16).padStart(5, '0')};` },
      { type: 'text', text: textOf(`${seed} claude-code role`, 60), ...cached },
      { type: 'text', text: instructionsOf('claude-code', history), ...cached },
    ],
    tools: toolsOf('claude-code', history, 'input_schema'),
    metadata: { user_id: JSON.stringify({ device_id: 'device', account_uuid: '', session_id: name }) },
    max_tokens: 32_000,
    stream: true,
  }
  const headers = { 'x-claude-code-session-id': name, 'anthropic-version': '2023-06-01' }
  return { path: '/v1/messages?beta=true', headers, body: JSON.stringify(body) }
}

const openCode = (history: AgentHistory): AgentRequest =>
  openCodeRequest(history, {
    messages: [
      { role: 'system', content: instructionsOf('opencode', history) },
      ...exchangesOf(history).map(({ role, text }) => ({ role, content: text })),
    ],
    tools: toolsOf('opencode', history, 'parameters').map((tool) => ({ type: 'function', function: tool })),
    tool_choice: 'auto',
  })

/** Sent at the same time as the first turn. */
const openCodeTitle = (history: AgentHistory): AgentRequest =>
  openCodeRequest(history, {
    messages: [
      { role: 'system', content: textOf(`${history.seed} opencode title`, 1800 * history.scale) },
      { role: 'user', content: 'Generate a title for this conversation:\n' },
      ...exchangesOf(history).map(({ role, text }) => ({ role, content: text })),
    ],
  })

const openCodeRequest = ({ model, name }: AgentHistory, prompt: object): AgentRequest => {
  const body = { model, max_tokens: 32_000, ...prompt, stream: true, stream_options: { include_usage: true } }
  const headers = { 'x-session-affinity': `ses_${name}`, 'x-session-id': `ses_${name}` }
  return { path: '/v1/chat/completions', headers, body: JSON.stringify(body) }
}
