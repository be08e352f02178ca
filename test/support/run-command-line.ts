import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** How a process of the command line ended. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the compiled command line to its end, with these variables alone. */
export const runCommandLine = (
  args: readonly string[],
  options: {
    readonly packageRoot?: string
    readonly env?: Readonly<Record<string, string>>
    /** When it prints this, it is told to stop. */
    readonly until?: string
    /** Text for its standard input. Default: none. */
    readonly input?: string
  } = {},
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const { packageRoot = root, env = {}, until, input = '' } = options
    const child = spawn(process.execPath, [join(packageRoot, 'dist/src/main.js'), ...args], { env })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
      if (until !== undefined && stdout.includes(until)) child.kill()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
