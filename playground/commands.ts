import type { PlaygroundCommands } from '../src/playground-commands.d.ts'
import { runReplay } from './replay/run-replay.ts'
import { runEverything } from './run.ts'
import { runVllmFleet } from './vllm/run-vllm-fleet.ts'

/** What `context-cache-gateway` loads when one of these commands is asked for. */
export const playgroundCommands: PlaygroundCommands = {
  run: runEverything,
  'vllm-up': runVllmFleet,
  replay: runReplay,
}
