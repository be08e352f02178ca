import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { installOnce, runInstaller } from '../../playground/install/install-once.ts'
import { packageRoot, toolsDir } from '../../playground/paths.ts'

/** Starts a browser, which is unpacked on first use: that takes half a minute. @throws InstallError */
export const launchBrowser = async (): Promise<Browser> => {
  const manifest = await readFile(join(packageRoot(), 'node_modules/@sparticuz/chromium/package.json'), 'utf8')
  const directory = join(toolsDir(), `chromium-${JSON.parse(manifest).version}`)
  await installOnce({ directory, install: unpack })
  // No sandbox, since tests may run as root. The flags of the package would switch off what the tests are about.
  return chromium.launch({ executablePath: join(directory, 'chromium'), args: ['--no-sandbox'] })
}

/** The package looks for its folder in the environment of its process. */
const unpack = (folder: string): Promise<void> =>
  runInstaller(
    [
      process.execPath,
      '--input-type=module',
      '--eval',
      "await (await import('@sparticuz/chromium')).default.executablePath()",
    ],
    { env: { ...process.env, TMPDIR: folder }, cwd: packageRoot() },
  )
