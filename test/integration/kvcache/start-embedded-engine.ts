import { startEngine } from '../../../playground/start-engine.ts'
import { contextTokensPerSlot, type StartSlotEngine, slotsPerPod } from './slots-test-bed.ts'

export const startEmbeddedEngine: StartSlotEngine = async (options) => {
  const engine = await startEngine({
    ...options,
    modelNames: ['tiny'],
    slots: slotsPerPod,
    contextTokensPerSlot,
    extraArguments: ['--log-level', 'warn'],
  })
  return engine.child
}
