import type { FleetSettings } from '../../../../playground/replay/fleet-settings.ts'

/** A token takes 1 ms to compute and 0.1 ms to load or save, which takes 10 ms beside that; a generated token 10 ms. */
export const settings: FleetSettings = {
  pods: 1,
  podBlocks: Number.POSITIVE_INFINITY,
  storeBlocks: Number.POSITIVE_INFINITY,
  prefillTokensPerSecond: 1_000,
  loadTokensPerSecond: 10_000,
  decodeTokensPerSecond: 100,
  timeScale: 1,
}
