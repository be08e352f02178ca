import { packageRoot } from '../../../playground/paths.ts'
import { shell } from './follow-page.ts'
import { nodeMount, nodeProgram } from './node-program.ts'
import type { Rig } from './rig.ts'

/** The versions of the gateway, as its metrics name them: of this checkout, and of the other one. */
export const versionNames = { installed: '0.1.0', other: '0.2.0' } as const

/** The header that the other version's Lua file adds to answers. */
export const otherHeader = 'x-parts'

/**
 * Makes another version in `$HOME/other`, with an image of its own: of the built checkout that OTHER_VERSION names,
 * else of this one. It is told apart by a version number, a limit in Envoy's configuration and a header of its own. The
 * clusters of ext_proc stay: where they change, Envoy itself cuts decisions under way (docs/kubernetes.md).
 */
export const makeOtherVersion = async (rig: Rig): Promise<void> => {
  const from = process.env['OTHER_VERSION'] ?? packageRoot()
  const folder = `${rig.folder}/other`
  // The mount point is for the packages. The folder of a test is closed to other users, and this one is mounted.
  await shell(
    rig,
    `mkdir -p ${folder}/node_modules; cd ${from}; cp -r package.json protos dist deploy envoy.yaml ${folder}; cd ${folder}
    sed -i 's/${versionNames.installed}/${versionNames.other}/' package.json deploy/helm/context-cache-gateway/Chart.yaml
    sed -i 's/request_body_buffer_limit: 16777216/request_body_buffer_limit: 17825792/' envoy.yaml
    sed -i 's/^  connection: { bufferLimit: 16Mi }/  connection: { bufferLimit: 17Mi }/' deploy/envoy-gateway/context-cache.yaml
    echo 'local respond = envoy_on_response
    function envoy_on_response(handle) handle:headers():add("${otherHeader}", "other") respond(handle) end' >> deploy/envoy/context-cache.lua`,
  )
  const app = '/opt/context-cache-gateway'
  rig.images[`context-cache-gateway:${versionNames.other}`] = {
    entrypoint: [nodeProgram, `${app}/dist/src/main.js`],
    mounts: { ...nodeMount, [app]: folder, [`${app}/node_modules`]: `${from}/node_modules` },
  }
}
