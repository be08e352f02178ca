import { execFile } from 'node:child_process'
import type { Command } from './server-tool.ts'

/**
 * The same command, run so that the kernel kills it when the thread that started it ends, even by kill -9
 * (PR_SET_PDEATHSIG, set by util-linux's setpriv, which then becomes the program). Unchanged where setpriv cannot do it.
 */
export async function endWithParent(command: Command): Promise<Command> {
  const prefix = ['--pdeathsig', 'KILL', '--'] as const
  return (await runsWell('setpriv', [...prefix, 'true'])) ? ['setpriv', ...prefix, ...command] : command
}

function runsWell(file: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(file, [...args], { timeout: 5000 }, (error) => resolve(error === null))
  })
}
