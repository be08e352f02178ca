import type { Command, CommandContext } from '../../src/commands/command.ts'
import { podsCommand } from '../../src/commands/pods.ts'
import { sessionsCommand } from '../../src/commands/sessions.ts'
import { tenantsCommand } from '../../src/commands/tenants.ts'
import { topCommand } from '../../src/commands/top.ts'
import type { Ended } from './run-command-line.ts'

const commands: Readonly<Record<string, Command>> = {
  pods: podsCommand,
  sessions: sessionsCommand,
  tenants: tenantsCommand,
  top: topCommand,
}

/** Runs a command of operators to its end as the command line does, but in this process. */
export const runInProcess = async (
  [name = '', ...args]: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>
    /** Default: what is written becomes `stdout`, and is no terminal. */
    readonly output?: Partial<CommandContext['output']>
    readonly untilStopped?: () => Promise<void>
  } = {},
): Promise<Ended> => {
  const command = commands[name]
  if (command === undefined) throw new Error(`there is no command ${name}`)
  let [stdout, stderr] = ['', '']
  const fail = (line: string): void => {
    stderr += `${line}\n`
  }
  const code = await command({
    args,
    env: options.env ?? {},
    version: '0.0.0',
    output: {
      isTerminal: false,
      size: () => ({ columns: 80, rows: 24 }),
      write: (text) => {
        stdout += text
      },
      onResize: () => undefined,
      ...options.output,
    },
    readInput: async () => '',
    print: (line) => {
      stdout += `${line}\n`
      return 0
    },
    fail: (line) => {
      fail(line)
      return 1
    },
    failUsage: (message) => {
      fail(message)
      return 2
    },
    untilStopped: options.untilStopped ?? (() => new Promise(() => undefined)),
  })
  return { code, stdout, stderr }
}
