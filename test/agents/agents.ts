// How each agent is set up and called. docs/clients.md shows the same settings.
import { blocksOf } from '../integration/docs/blocks.ts'

export const agentNames = ['Codex', 'Claude Code', 'OpenCode'] as const
export type AgentName = (typeof agentNames)[number]

/** One agent, as its user starts it without a terminal. */
export interface Agent {
  /** Its file below `node_modules`. */
  readonly program: string
  /** Its file of settings below the home folder, if it has one. */
  readonly settings?: { readonly path: string; readonly text: string }
  readonly env: Readonly<Record<string, string>>
  /** Arguments of a conversation's first turn, and of the later ones. */
  readonly first: (prompt: string) => readonly string[]
  readonly later: (prompt: string) => readonly string[]
}

/** Exact versions on npm. What carries the program itself is named by system and processor. */
export const packages: Readonly<Record<AgentName, string>> = {
  Codex: '@openai/codex@0.171.0',
  'Claude Code': '@anthropic-ai/claude-code@2.1.197',
  OpenCode: 'opencode-ai@1.18.33',
}

/** The block of docs/clients.md in this language that has the text. */
const documented = (language: string, text: string): string => {
  const block = blocksOf('docs/clients.md').find((one) => one.language === language && one.text.includes(text))
  if (block === undefined) throw new Error(`docs/clients.md has no ${language} with ${text}`)
  return block.text
}

/** The variables of lines such as `export NAME=value OTHER=value`. */
const exported = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value] as const))

const codex = [
  'exec',
  '--skip-git-repo-check',
  '-c',
  'check_for_update_on_startup=false',
  '-c',
  'analytics.enabled=false',
]

/** The agents, set up as docs/clients.md says, but for the address, and for what they would fetch or report. */
export const agentsFor = (url: string): Readonly<Record<AgentName, Agent>> => {
  const at = (text: string): string => text.replaceAll('http://localhost:8000', url)
  const platform = `${process.platform}-${process.arch}`
  const key = { GATEWAY_API_KEY: 'test-key-1234567890' }
  return {
    Codex: {
      program: '@openai/codex/bin/codex.js',
      settings: { path: '.codex/config.toml', text: at(documented('toml', 'model_provider')) },
      env: key,
      first: (prompt) => [...codex, prompt],
      later: (prompt) => [...codex, 'resume', '--last', prompt],
    },
    'Claude Code': {
      program: `@anthropic-ai/claude-code-${platform}/claude`,
      env: {
        ...exported(at(documented('shell', 'ANTHROPIC_BASE_URL'))),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
      first: (prompt) => ['-p', prompt],
      later: (prompt) => ['-c', '-p', prompt],
    },
    OpenCode: {
      program: `opencode-${platform}/bin/opencode`,
      settings: { path: '.config/opencode/opencode.json', text: at(documented('json', '"provider"')) },
      env: {
        ...key,
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
      first: (prompt) => ['run', prompt],
      later: (prompt) => ['run', '-c', prompt],
    },
  }
}
