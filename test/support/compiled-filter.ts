import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { runCommand } from '../../playground/run-command.ts'

/** Envoy's filter for turns as its sources are now, compiled for this test. */
export const compileFilter = async (): Promise<WebAssembly.Module> => {
  const folder = await mkdtemp(join(tmpdir(), 'turns-filter-'))
  try {
    const file = join(folder, 'turns.wasm')
    const command = [process.execPath, join(packageRoot(), 'accelerator/build.mjs'), file] as const
    const built = await runCommand({ command, env: process.env, timeoutMs: 60_000 })
    if (!built.ok) throw new Error(`${built.reason}\n${built.stderr}`)
    return await WebAssembly.compile(new Uint8Array(await readFile(file)))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
