import { join } from 'node:path'
import { installOnce, runInstaller } from '../../playground/install/install-once.ts'
import { ownEnvironment, toolsDir } from '../../playground/paths.ts'

const requirements = ['openai==3.57.0', 'openai-agents==0.24.0']

/**
 * A folder for `PYTHONPATH` with OpenAI's SDKs for Python, installed from PyPI on first use (70 MB on disk), for `python3` 3.10
 * or newer with pip. @throws InstallError
 */
export const installPythonSdks = async (): Promise<string> => {
  const directory = join(toolsDir(), `python-sdks-${requirements.map((each) => each.split('==').at(-1)).join('-')}`)
  await installOnce({
    directory,
    install: (into) =>
      runInstaller(
        [
          'python3',
          '-m',
          'pip',
          'install',
          '--quiet',
          '--no-input',
          '--only-binary',
          ':all:',
          '--target',
          into,
          ...requirements,
        ],
        { env: ownEnvironment() },
      ),
  })
  return directory
}
