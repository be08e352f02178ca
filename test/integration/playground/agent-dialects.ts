// How coding agents write a conversation, in the members that they were seen to send.

/** The same in all dialects. */
export const instructions =
  'You are a coding agent. Keep going until the task is done, then tell the user what has changed. '.repeat(4)
/** What the agents' tools take. */
export const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }

/** One interface, as its agent uses it. */
export interface Dialect {
  readonly path: string
  /** The first turn; every further one has more entries. */
  readonly body: object
  readonly entries: 'messages' | 'input'
  readonly first: readonly object[]
  /** The client's history after an answer, with a tool that was called and gave a result. */
  readonly later: (text: string) => readonly object[]
  readonly read: (whole: never) => {
    readonly text: string
    readonly prompt: number
    readonly cached: number
    readonly output: number
  }
}

/** By client and interface. */
export const dialects: Readonly<Record<string, Dialect>> = {
  'OpenCode, chat completions': {
    path: '/v1/chat/completions',
    body: {
      max_tokens: 32_000,
      tools: [{ type: 'function', function: { name: 'bash', parameters: schema } }],
      tool_choice: 'auto',
    },
    entries: 'messages',
    first: [
      { role: 'system', content: instructions },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Say hello.' },
          { type: 'image_url', image_url: { url: 'data:,' } },
        ],
      },
    ],
    later: (text) => [
      { role: 'assistant', content: text },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'bash', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'README.md' },
      { role: 'developer', content: 'Be brief.' },
    ],
    read: ({ choices, usage }: ChatAnswer) => ({
      text: choices[0].message.content,
      prompt: usage.prompt_tokens,
      cached: usage.prompt_tokens_details.cached_tokens,
      output: usage.completion_tokens,
    }),
  },
  'Codex, responses': {
    path: '/v1/responses',
    body: {
      instructions,
      tools: [
        { type: 'function', name: 'shell', parameters: schema },
        { type: 'local_shell' },
        { type: 'custom', name: 'apply_patch' },
      ],
      reasoning: { effort: 'low' },
      store: false,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'thread',
      client_metadata: { session_id: 'thread' },
    },
    entries: 'input',
    first: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'The sandbox is read-only.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Say hello.' }] },
    ],
    later: (text) => [
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] },
      { type: 'reasoning', summary: [], content: null, encrypted_content: 'gAAA' },
      { type: 'function_call', call_id: 'a', name: 'shell', arguments: '{"command":"ls"}' },
      { type: 'function_call_output', call_id: 'a', output: 'README.md' },
      { type: 'local_shell_call', call_id: 'b', action: { type: 'exec', command: ['ls'] } },
      { type: 'custom_tool_call', call_id: 'c', name: 'apply_patch', input: '*** Begin Patch' },
      { type: 'custom_tool_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'Done.' }] },
      { type: 'of_next_year', detail: { x: [1] } },
    ],
    read: ({ output, usage }: ResponseAnswer) => ({
      text: output[0].content[0].text,
      prompt: usage.input_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      output: usage.output_tokens,
    }),
  },
  'Claude Code, messages': {
    path: '/v1/messages?beta=true',
    body: {
      max_tokens: 32_000,
      system: [{ type: 'text', text: instructions, cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'Bash', input_schema: schema }],
      metadata: { user_id: '{"session_id":"x"}' },
      thinking: { type: 'adaptive' },
      context_management: { edits: [] },
      output_config: { effort: 'low' },
    },
    entries: 'messages',
    first: [{ role: 'user', content: [{ type: 'text', text: 'Say hello.', cache_control: { type: 'ephemeral' } }] }],
    later: (text) => [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: '' },
          { type: 'text', text },
        ],
      },
      { role: 'user', content: 'List the files.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'Bash', input: { command: 'ls' } }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'README.md' }] },
          { type: 'tool_result', tool_use_id: 'b', content: 'failed', is_error: true },
          { type: 'tool_result', tool_use_id: 'c' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } },
        ],
      },
    ],
    read: ({ content, usage }: MessageAnswer) => ({
      text: content[0].text,
      prompt: usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
      cached: usage.cache_read_input_tokens,
      output: usage.output_tokens,
    }),
  },
}

interface ChatAnswer {
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
  readonly usage: {
    readonly prompt_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
    readonly completion_tokens: number
  }
}

interface ResponseAnswer {
  readonly output: readonly [{ readonly content: readonly [{ readonly text: string }] }]
  readonly usage: {
    readonly input_tokens: number
    readonly input_tokens_details: { readonly cached_tokens: number }
    readonly output_tokens: number
  }
}

interface MessageAnswer {
  readonly content: readonly [{ readonly text: string }]
  readonly usage: {
    readonly input_tokens: number
    readonly cache_read_input_tokens: number
    readonly cache_creation_input_tokens: number
    readonly output_tokens: number
  }
}
