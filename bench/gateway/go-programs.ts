import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from '../../playground/install/find-tool.ts'
import { packageRoot } from '../../playground/paths.ts'
import { runCommand } from '../../playground/run-command.ts'

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

export type GoOutcome =
  | { readonly kind: 'built'; readonly programs: GoPrograms }
  /** `reason` is one line. */
  | { readonly kind: 'unavailable'; readonly reason: string }

const buildTimeoutMs = 600_000
const versionTimeoutMs = 10_000

/** Builds bench/go-server into .run/go. The first time it downloads two modules and takes a minute, then it is a look at the cache. */
export const buildGoPrograms = async (): Promise<GoOutcome> => {
  const go = await findOnPath('go', process.env)
  if (go === undefined) return { kind: 'unavailable', reason: 'go is not on PATH' }
  const version = await runCommand({ command: [go, 'env', 'GOVERSION'], env: process.env, timeoutMs: versionTimeoutMs })
  const into = join(packageRoot(), '.run/go')
  await mkdir(into, { recursive: true })
  const built = await runCommand({
    command: [go, 'build', '-buildvcs=false', '-o', `${into}/`, './...'],
    env: process.env,
    cwd: join(packageRoot(), 'bench/go-server'),
    timeoutMs: buildTimeoutMs,
  })
  if (!built.ok)
    return { kind: 'unavailable', reason: `go build failed: ${built.reason} ${built.stderr.trim().split('\n').at(-1)}` }
  const program = (name: string): string => join(into, name)
  return {
    kind: 'built',
    programs: {
      extproc: program('extproc'),
      upstream: program('upstream'),
      load: program('load'),
      version: version.ok ? version.stdout.trim() : 'unknown',
    },
  }
}
