import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runCommand } from '../../playground/run-command.ts'
import { type AgentName, agentsFor } from './agents.ts'

/** One conversation with an agent, which has a home folder of its own. */
export interface Conversation {
  /** Runs the agent for one turn, which continues the conversation from the second one on. @throws Error when it fails */
  say(prompt: string): Promise<void>
  /** Removes the home folder. */
  end(): Promise<void>
}

const timeoutMs = 200_000

/** Nothing listens there: what an agent would fetch or report elsewhere fails. */
const noInternet = { HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1' }

/** `modules`: see `installAgents`. `url`: the server that the agent is set up for. */
export const startConversation = async (name: AgentName, modules: string, url: string): Promise<Conversation> => {
  const { program, settings, env, first, later } = agentsFor(url)[name]
  const home = await mkdtemp(join(tmpdir(), 'agent-'))
  const cwd = join(home, 'project')
  await mkdir(cwd)
  if (settings !== undefined) {
    const file = join(home, settings.path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, settings.text)
  }
  const file = join(modules, program)
  const command = file.endsWith('.js') ? ([process.execPath, file] as const) : ([file] as const)
  let turns = 0
  return {
    say: async (prompt) => {
      const args = (turns === 0 ? first : later)(prompt)
      turns += 1
      const outcome = await runCommand({
        // They wait for the end of an input that is open.
        command: ['sh', '-c', 'exec "$@" < /dev/null', 'sh', ...command, ...args],
        env: { PATH: process.env['PATH'], HOME: home, ...noInternet, ...env },
        cwd,
        timeoutMs,
      })
      if (!outcome.ok) throw new Error(`${name}: ${outcome.reason}\n${outcome.stderr.slice(-2000)}`)
    },
    end: () => rm(home, { recursive: true, force: true }),
  }
}
