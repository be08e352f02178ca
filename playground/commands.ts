import type { PlaygroundCommands } from '../src/playground-commands.d.ts'

/** What `context-cache-gateway` loads when one of these commands is asked for, and no other. */
export const playgroundCommands: PlaygroundCommands = {
  run: async (context) => (await import('./run.ts')).runEverything(context),
  'vllm-up': async (context) => (await import('./vllm/run-vllm-fleet.ts')).runVllmFleet(context),
  replay: async (context) => (await import('./replay/run-replay.ts')).runReplay(context),
}
