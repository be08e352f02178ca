// Sees to it that dist/ holds the engine as the sources have it, and that llama.cpp is installed.
import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../../', import.meta.url))

/** The built engine's entry. */
export const engineEntry = join(root, 'dist/playground/engine/main.js')

/**
 * Builds the project where it is out of date, and installs the engine's runtime where it is missing. Both are quick
 * otherwise.
 */
export async function prepareEngine(): Promise<void> {
  await run(process.execPath, [join(root, 'playground/engine-runtime/install.mjs')])
  if (!(await isStale())) return
  await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
    cwd: root,
  })
  await run(process.execPath, ['scripts/copy-assets.mjs'], { cwd: root })
}

async function isStale(): Promise<boolean> {
  const source = join(root, 'playground/engine')
  const names = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.ts'))
  const pairs = await Promise.all(
    names.map(async (name) => {
      const built = await stat(join(root, 'dist/playground/engine', name.replace(/\.ts$/, '.js'))).catch(
        () => undefined,
      )
      return { sourceMs: (await stat(join(source, name))).mtimeMs, builtMs: built?.mtimeMs ?? 0 }
    }),
  )
  return pairs.some(({ sourceMs, builtMs }) => sourceMs > builtMs)
}
