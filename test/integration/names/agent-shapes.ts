// Requests as agents send them, recorded from Codex 0.171.0, Claude Code 2.1.197 and OpenCode 1.18.33; the texts are
// invented, and shorter.

/** A turn of a conversation: what the user says, and what the model answered, but for the last one. */
export interface Said {
  readonly user: string
  readonly answer?: string
}

/** What tells two prompts under one name apart. */
export interface Prompt {
  readonly instructions: string
  readonly withTools: boolean
}

export interface AgentRequest {
  readonly path: string
  /** But for the content type. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
}

/** An event of a stream, of whichever interface. */
export interface StreamEvent {
  readonly type?: string
  readonly delta?: string | { readonly text?: string }
  readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[]
  readonly usage?: Usage | null
  readonly response?: { readonly usage?: Usage | null }
}

interface Usage {
  readonly prompt_tokens?: number
  readonly prompt_tokens_details?: { readonly cached_tokens: number }
  readonly input_tokens?: number
  readonly input_tokens_details?: { readonly cached_tokens: number }
  readonly cache_read_input_tokens?: number
}

/** One agent. `turns`: all of the conversation, the last one without an answer. */
export interface AgentShape {
  readonly namedBy: string
  readonly request: (name: string, prompt: Prompt, turns: readonly Said[]) => AgentRequest
}

const parameters = { type: 'object', properties: { content: { type: 'string' } }, required: ['content'] }
const model = 'tiny-random'

const codex: AgentShape = {
  namedBy: 'thread-id',
  request: (name, { instructions, withTools }, turns) => {
    const turnId = `turn-${turns.length}`
    const metadata = JSON.stringify({ session_id: name, thread_id: name, turn_id: turnId, window_number: 0, model })
    const item = (role: string, text: string) => {
      const type = role === 'assistant' ? 'output_text' : 'input_text'
      return { type: 'message', role, content: [{ type, text }] }
    }
    return {
      path: '/v1/responses',
      headers: {
        accept: 'text/event-stream',
        authorization: 'Bearer test-key-1234567890',
        originator: 'codex_exec',
        'session-id': name,
        'thread-id': name,
        'x-client-request-id': name,
        'x-codex-turn-metadata': metadata,
        'x-codex-window-id': `${name}:0`,
      },
      body: {
        model,
        stream: true,
        input: [
          item('developer', instructions),
          item('developer', 'The sandbox is read-only.'),
          item('user', 'The folder is /home/user/project.'),
          ...turns.flatMap(({ user, answer }) => [
            item('user', user),
            ...(answer === undefined ? [] : [item('assistant', answer)]),
          ]),
        ],
        tools: withTools ? [{ type: 'function', name: 'exec_command', strict: false, parameters }] : [],
        tool_choice: 'auto',
        parallel_tool_calls: false,
        reasoning: null,
        store: false,
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: name,
        client_metadata: { session_id: name, turn_id: turnId, 'x-codex-turn-metadata': metadata },
      },
    }
  },
}

const claudeCode: AgentShape = {
  namedBy: 'x-claude-code-session-id',
  request: (name, { instructions, withTools }, turns) => {
    const mark = { cache_control: { type: 'ephemeral' } }
    // The first line differs in each request; the last mark is on the last message.
    const hash = (0xa1b2c * turns.length).toString(16).slice(0, 5)
    return {
      path: '/v1/messages?beta=true',
      headers: {
        'x-claude-code-session-id': name,
        'anthropic-beta': 'claude-code-20250219',
        'anthropic-version': '2023-06-01',
        'x-app': 'cli',
        'x-api-key': 'test-key-1234567890',
      },
      body: {
        model,
        messages: turns.flatMap(({ user, answer }) => [
          { role: 'user', content: [{ type: 'text', text: user, ...(answer === undefined ? mark : {}) }] },
          ...(answer === undefined ? [] : [{ role: 'assistant', content: [{ type: 'text', text: answer }] }]),
        ]),
        system: [
          { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.197.${hash}; cch=${hash};` },
          { type: 'text', text: 'You are a coding agent.', ...mark },
          { type: 'text', text: instructions, ...mark },
        ],
        tools: withTools ? [{ name: 'Bash', input_schema: parameters }] : [],
        metadata: { user_id: JSON.stringify({ device_id: 'd', account_uuid: '', session_id: name }) },
        max_tokens: 32_000,
        thinking: { type: 'adaptive' },
        context_management: { edits: [] },
        output_config: { effort: 'medium' },
        stream: true,
      },
    }
  },
}

const openCode: AgentShape = {
  namedBy: 'x-session-affinity',
  request: (name, { instructions, withTools }, turns) => ({
    path: '/v1/chat/completions',
    headers: { authorization: 'Bearer test-key-1234567890', 'x-session-affinity': name, 'x-session-id': name },
    body: {
      model,
      max_tokens: 32_000,
      messages: [
        { role: 'system', content: instructions },
        ...turns.flatMap(({ user, answer }) => [
          { role: 'user', content: user },
          ...(answer === undefined ? [] : [{ role: 'assistant', content: answer }]),
        ]),
      ],
      ...(withTools
        ? { tools: [{ type: 'function', function: { name: 'bash', parameters } }], tool_choice: 'auto' }
        : {}),
      stream: true,
      stream_options: { include_usage: true },
    },
  }),
}

export const agentShapes: Readonly<Record<string, AgentShape>> = {
  Codex: codex,
  'Claude Code': claudeCode,
  OpenCode: openCode,
}

/** What a stream says. */
export const readStream = (
  text: string,
): { readonly answer: string; readonly promptTokens: number; readonly cachedTokens: number } => {
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as StreamEvent)
  const usages = events.flatMap(({ usage, response }) => usage ?? response?.usage ?? [])
  const usage = usages.at(-1)
  if (usage === undefined) throw new Error(`no usage in ${text}`)
  const fromCache = usage.cache_read_input_tokens
  return {
    answer: events.map(textOf).join(''),
    promptTokens: (usage.prompt_tokens ?? usage.input_tokens ?? 0) + (fromCache ?? 0),
    cachedTokens: fromCache ?? (usage.prompt_tokens_details ?? usage.input_tokens_details)?.cached_tokens ?? 0,
  }
}

const textOf = ({ type, delta, choices }: StreamEvent): string => {
  if (type === 'response.output_text.delta' && typeof delta === 'string') return delta
  if (type === 'content_block_delta' && typeof delta === 'object') return delta.text ?? ''
  return choices?.[0]?.delta.content ?? ''
}
