import { rm } from 'node:fs/promises'

// biome-ignore lint/style/noDefaultExport: Jest asks for one.
export default async function stopFleet() {
  const { fleet, folder } = globalThis.vllmFleet
  await rm(folder, { recursive: true, force: true })
  await fleet.stop()
}
