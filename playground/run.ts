import type { CommandContext } from '../src/playground-commands.d.ts'
import { createChildren } from './child-process.ts'
import { createKeeper } from './keep-running.ts'
import { type RunSettings, readRunSettings } from './run-settings.ts'
import { type RunningStack, startStack } from './start-stack.ts'

/**
 * `context-cache-gateway run`: Envoy, the gateway and pods on this machine, until Ctrl-C, which also ends a start in
 * progress. What ends by itself is started again. Resolves to the exit code; no process stays behind.
 */
export const runEverything = async ({ env, print, fail, untilStopped }: CommandContext): Promise<number> => {
  const settings = readRunSettings(env)
  if (typeof settings === 'string') return fail(settings)
  const children = createChildren()
  const stopping = new AbortController()
  const stopped = untilStopped().then(() => {
    print('stopping')
    stopping.abort(new Error('interrupted'))
  })
  try {
    const { signal } = stopping
    // What ends tells nothing: Envoy may print a trace when it ends during a request.
    const report = (line: string): void => void (signal.aborted || print(line))
    const keep = createKeeper({ report, signal })
    const stack = await startStack(settings, { env, children, onLine: report, signal, keep, randomModel })
    print(readyText(settings, stack))
    await stopped
    return 0
  } catch (error) {
    if (stopping.signal.aborted) return 0
    return fail(error instanceof Error ? error.message : String(error))
  } finally {
    stopping.abort(new Error('ended'))
    // Envoy first, so that clients see a closed port and not a half-dead gateway.
    await children.stop()
  }
}

/** How `run` serves its own model: with room for the history of a coding agent; a slot of it takes 67 MB. */
export const randomModel = { vocabulary: 'words', contextTokensPerSlot: 131_072 } as const

const readyText = (settings: RunSettings, { url, pods, adminUrl, envoyAdmin }: RunningStack): string => {
  const isRandom = settings.modelPath === undefined && settings.pods === undefined
  const model = isRandom ? 'tiny-random' : 'YOUR_MODEL'
  const noise = ['', 'The model has random weights: its text is noise, its prefill, its KV and its times are real.']
  return [
    `ready  ${url}  pods ${pods.join(', ')}  metrics ${adminUrl}/metrics  console ${adminUrl}/console/  envoy ${envoyAdmin}`,
    ...(isRandom ? noise : []),
    '',
    'Try it (Ctrl-C ends everything):',
    `  curl -i ${url}/v1/context -H 'Authorization: Bearer test-key-1234567890' -H 'x-session-ttl: 3600' \\`,
    `    -H 'Content-Type: application/json' -d '{"model": "${model}", "prompt": "Say this is a test"}'`,
  ].join('\n')
}
