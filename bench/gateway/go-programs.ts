import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { type Command, runCommand } from '../../playground/run-command.ts'

/** The bench's own programs, as paths. */
export interface GoPrograms {
  /** The reference: a minimal external processor. */
  readonly extproc: string
  /** Answers in place of the engines. */
  readonly upstream: string
  readonly load: string
  /** Of the compiler, such as `go1.26.8`. */
  readonly version: string
}

const timeoutMs = 600_000

/**
 * Builds bench/go-server into .run/go. The first time it downloads two modules and takes a minute, then it is a look at the cache. A string says why
 * it is not possible.
 */
export const buildGoPrograms = async (): Promise<GoPrograms | string> => {
  const cwd = join(packageRoot(), 'bench/go-server')
  const run = (...command: Command) => runCommand({ command, env: process.env, cwd, timeoutMs })
  const into = join(packageRoot(), '.run/go')
  await mkdir(into, { recursive: true })
  const version = await run('go', 'env', 'GOVERSION')
  if (!version.ok) return `go cannot be run: ${version.reason}`
  const built = await run('go', 'build', '-buildvcs=false', '-o', `${into}/`, './...')
  if (!built.ok) return `go build failed: ${built.reason} ${built.stderr.trim().split('\n').at(-1)}`
  return {
    extproc: join(into, 'extproc'),
    upstream: join(into, 'upstream'),
    load: join(into, 'load'),
    version: version.stdout.trim(),
  }
}
