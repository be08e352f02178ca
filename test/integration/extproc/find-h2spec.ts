import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { findOnPath } from '../../../playground/install/find-tool.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { runCommand } from '../../../playground/run-command.ts'

export type H2specOutcome =
  | { readonly found: true; readonly path: string }
  /** `reason` is one line. */
  | { readonly found: false; readonly reason: string }

const version = 'v2.2.1+incompatible'
const buildTimeoutMs = 240_000

/** The conformance tests for HTTP/2 servers, built from their source once, where there is Go and its modules can be had. */
export const findH2spec = async (): Promise<H2specOutcome> => {
  const directory = join(toolsDir(), `h2spec-${version}`)
  const path = join(directory, 'h2spec')
  if (await exists(path)) return { found: true, path }
  const go = await findOnPath('go', process.env)
  if (go === undefined) return { found: false, reason: 'go is not on PATH' }
  const built = await runCommand({
    command: [go, 'install', `github.com/summerwind/h2spec/cmd/h2spec@${version}`],
    env: { ...process.env, GOBIN: directory, GO111MODULE: 'on' },
    timeoutMs: buildTimeoutMs,
  })
  return built.ok && (await exists(path))
    ? { found: true, path }
    : { found: false, reason: built.ok ? 'go install left nothing' : `go install failed: ${built.reason}` }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
