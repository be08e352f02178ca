import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// Jest loads this file as it is, without turning TypeScript into JavaScript, so it takes the compiled launcher.
import { obtainVllmFleet } from '../../../dist/playground/vllm/start-vllm-fleet.js'

/** Runs once before all tests; stop-fleet.mjs finds in `globalThis.vllmFleet` what to undo. */
// biome-ignore lint/style/noDefaultExport: Jest asks for one.
export default async function startFleet() {
  const fleet = await obtainVllmFleet({
    env: process.env,
    onLine: (line) => process.stdout.write(`${line}\n`),
  })
  const folder = await mkdtemp(join(tmpdir(), 'vllm-fleet-'))
  const file = join(folder, 'fleet.json')
  await writeFile(file, JSON.stringify(fleet.description))
  globalThis.vllmFleet = { fleet, folder }
  process.env.VLLM_FLEET = file
}
