import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { InstallError } from '../../../playground/install/install-once.ts'
import { type Environment, runCommand } from '../../../playground/run-command.ts'
import type { GoTool } from './go-tools.ts'

/** The longest build that is waited for, on a machine that does other work too. */
const timeoutMs = 7_200_000

/**
 * Builds `tool` into the folder `into`, at a low priority and with two compilers at once. It is built by a module of
 * its own, since Go ignores the `replace` lines of a module that another one requires. @throws InstallError
 */
export const buildGoTool = async (tool: GoTool, into: string, env: Environment): Promise<void> => {
  const { name, module, moduleVersion } = tool
  const source = join(into, 'module')
  const go = async (...args: readonly string[]): Promise<string> => {
    const outcome = await runCommand({ env, command: ['nice', '-n', '19', 'go', ...args], cwd: source, timeoutMs })
    if (!outcome.ok) throw new InstallError(`${name} cannot be built: ${outcome.stderr.trim().slice(-2_000)}`)
    return outcome.stdout
  }
  await mkdir(source, { recursive: true })
  await writeFile(join(source, 'go.mod'), 'module test\n')
  const download = JSON.parse(await go('mod', 'download', '-json', `${module}@${moduleVersion}`))
  const required = await readFile(z.object({ GoMod: z.string() }).parse(download).GoMod, 'utf8')
  await writeFile(join(source, 'go.mod'), goMod(tool, required))
  if (tool.kind === 'test') await writeFile(join(source, 'conformance_test.go'), testSource(tool.package))
  const linker = ['-s', '-w', ...Object.entries(tool.variables ?? {}).map(([key, value]) => `-X=${key}=${value}`)]
  const flags = ['-mod=mod', '-p=2', '-trimpath', '-buildvcs=false', `-ldflags=${linker.join(' ')}`]
  const target = tool.kind === 'test' ? ['test', '-c'] : ['build']
  await go(...target, ...flags, '-o', join(into, name), tool.kind === 'test' ? '.' : tool.package)
  await rm(source, { recursive: true })
}

/** The parts of Kubernetes in `./staging` are released as modules of their own, v0.37.2 with v1.37.2. */
const goMod = ({ module, moduleVersion }: GoTool, required: string): string => {
  const staged = [...required.matchAll(/^\s+(\S+) => \.\/staging\//gm)].map(([, path]) => path)
  const goVersion = /^go (\S+)$/m.exec(required)?.[1]
  return [
    'module test',
    `go ${goVersion}`,
    `require ${module} ${moduleVersion}`,
    ...staged.map((path) => `replace ${path} => ${path} ${moduleVersion.replace('v1.', 'v0.')}`),
  ].join('\n')
}

const testSource = (packageName: string): string => `package test

import (
	"testing"

	"${packageName}"
)

func TestConformance(t *testing.T) { conformance.RunConformance(t) }
`
