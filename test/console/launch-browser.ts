import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { packageRoot } from '../../playground/paths.ts'
import { runCommand } from '../../playground/run-command.ts'

/** A browser in a folder of its own. */
export interface LaunchedBrowser {
  readonly browser: Browser
  /** Ends it, and removes the folder. */
  readonly close: () => Promise<void>
}

/** Unpacks and starts one. */
export const launchBrowser = async (): Promise<LaunchedBrowser> => {
  const folder = await mkdtemp(join(tmpdir(), 'browser-'))
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    // No sandbox, since tests may run as root. The flags of the package would switch off what the tests are about.
    const browser = await chromium.launch({ executablePath: await unpack(folder), args: ['--no-sandbox'] })
    return {
      browser,
      close: async () => {
        await browser.close()
        await removeFolder()
      },
    }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

/** The package looks for its folder in the environment of its process. */
const unpack = async (folder: string): Promise<string> => {
  const script = `process.stdout.write(await (await import('@sparticuz/chromium')).default.executablePath())`
  const outcome = await runCommand({
    command: [process.execPath, '--input-type=module', '--eval', script],
    env: { ...process.env, TMPDIR: folder },
    cwd: packageRoot(),
    timeoutMs: 120_000,
  })
  if (!outcome.ok) throw new Error(`${outcome.reason}\n${outcome.stderr}`)
  return outcome.stdout
}
